// Exponential and logarithm with the same bits on every machine: a libm chooses its version by the
// processor, and the last bit with it. Additions, products and quotients are rounded alike
// everywhere.

#pragma once

namespace tactus::simulator {

// e^x, to 4 ulp where the result is normal. 0 below -745, infinity above 710, NaN of NaN.
// Source: design; Cody-Waite reduction by ln 2 and a Taylor series.
double Exponential(double x);

// ln x of a finite x > 0, to 4 ulp.
// Source: design; ln m = 2 artanh((m - 1) / (m + 1)) on the mantissa.
double Logarithm(double x);

}  // namespace tactus::simulator
