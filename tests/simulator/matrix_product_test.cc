#include "simulator/matrix_product.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "gtest/gtest.h"

namespace tactus::simulator {
namespace {

constexpr float kUntouched = 12345;

std::vector<float> Numbers(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  Rng rng(seed);
  for (float& value : values) value = static_cast<float>(2 * rng.Uniform() - 1);
  return values;
}

float At(const MatrixView& matrix, std::size_t row, std::size_t column) {
  return *matrix.From(row, column).values;
}

// Checks c + a b against float64, for all numbers within [-1, 1], and that nothing is written
// behind c.
void ExpectProduct(const ProductSizes& sizes, const MatrixView& a, const MatrixView& b) {
  const std::size_t size = sizes.rows * sizes.columns;
  const std::vector<float> before = Numbers(size, 3);
  std::vector<float> c = before;
  c.resize(size + 16, kUntouched);

  AddProduct(sizes, a, b, c.data());

  const auto terms = static_cast<double>(sizes.terms);
  const double tolerance = (64 + terms / 64) * 0x1.0p-24 * (terms + 1);
  for (std::size_t r = 0; r < sizes.rows; ++r) {
    for (std::size_t j = 0; j < sizes.columns; ++j) {
      double expected = before[r * sizes.columns + j];
      for (std::size_t k = 0; k < sizes.terms; ++k) {
        expected += static_cast<double>(At(a, r, k)) * At(b, k, j);
      }
      ASSERT_NEAR(c[r * sizes.columns + j], expected, tolerance) << r << ", " << j;
    }
  }
  for (std::size_t i = size; i < c.size(); ++i) ASSERT_EQ(c[i], kUntouched);
}

TEST(MatrixProductTest, AgreesWithTheDefinitionAtAllSizes) {
  for (const std::size_t rows : {0, 1, 3, 4, 5, 9}) {
    for (const std::size_t terms : {0, 1, 2, 63, 64, 65, 200}) {
      for (const std::size_t columns : {0, 1, 15, 16, 17, 40}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << terms << " x " << columns);
        const std::vector<float> a = Numbers(rows * terms, 1);
        const std::vector<float> b = Numbers(terms * columns, 2);
        const ProductSizes sizes{.rows = rows, .terms = terms, .columns = columns};

        ExpectProduct(sizes, {a.data(), terms}, {b.data(), columns});
        ExpectProduct(sizes, MatrixView{a.data(), rows}.Transposed(),
                      MatrixView{b.data(), terms}.Transposed());
      }
    }
  }
}

TEST(MatrixProductTest, ARowIsTheSameBitsAloneAndAmongOthers) {
  constexpr std::size_t kRows = 7;
  constexpr std::size_t kTerms = 150;
  constexpr std::size_t kColumns = 21;
  const std::vector<float> a = Numbers(kRows * kTerms, 1);
  const std::vector<float> b = Numbers(kTerms * kColumns, 2);
  std::vector<float> together(kRows * kColumns);
  std::vector<float> alone(kRows * kColumns);

  AddProduct({kRows, kTerms, kColumns}, {a.data(), kTerms}, {b.data(), kColumns}, together.data());
  for (std::size_t r = 0; r < kRows; ++r) {
    AddProduct({1, kTerms, kColumns}, {a.data() + r * kTerms, kTerms}, {b.data(), kColumns},
               alone.data() + r * kColumns);
  }

  EXPECT_EQ(together, alone);
}

}  // namespace
}  // namespace tactus::simulator
