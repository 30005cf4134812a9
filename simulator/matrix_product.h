// The one piece of arithmetic that a perceptron spends its time in: a product of matrices.

#pragma once

#include <cstddef>

namespace tactus::simulator {

// A matrix in somebody's memory: element (r, c) is values[r * row_stride + c * column_stride].
struct MatrixView {
  const float* values = nullptr;
  std::size_t row_stride = 0;     // [elements]
  std::size_t column_stride = 1;  // [elements]

  // The part that begins at this element.
  MatrixView From(std::size_t row, std::size_t column) const {
    return {values + row * row_stride + column * column_stride, row_stride, column_stride};
  }
  MatrixView Transposed() const { return {values, column_stride, row_stride}; }
};

struct ProductSizes {
  std::size_t rows = 0;
  std::size_t terms = 0;  // columns of a, rows of b
  std::size_t columns = 0;
};

// c <- c + a b, for a [rows, terms], b [terms, columns] and c [rows, columns] row-major without
// gaps, which overlaps neither. Nothing happens where a size is 0.
//
// Terms are added up from zero in their order, 64 at a time, then to c; products and sums are each
// rounded to float32. So an element errs by at most (64 + terms / 64) 2^-24 sum |a b| and the bits
// do not depend on the sizes of the other dimensions.
void AddProduct(const ProductSizes& sizes, const MatrixView& a, const MatrixView& b, float* c);

}  // namespace tactus::simulator
