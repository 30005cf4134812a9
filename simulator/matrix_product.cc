#include "simulator/matrix_product.h"

#include <algorithm>

#include "cuda/ops/clones.h"

namespace tactus::simulator {
namespace {

// A tile of c is summed up in registers: kRows x kColumns floats are eight vectors of AVX2. (GCC 12
// does that at -O2; at -O3 it takes the columns apart before it vectorises them.)
constexpr std::size_t kRows = 4;
constexpr std::size_t kColumns = 16;
constexpr std::size_t kTerms = 64;

// Up to kTerms rows and kColumns columns of b, without gaps and filled up with zeros.
struct Panel {
  alignas(64) float values[kTerms][kColumns] = {};
};

struct Extent {
  std::size_t terms = 0;    // in [1, kTerms]
  std::size_t columns = 0;  // in [1, kColumns]
};

// Follows b's memory, which may be a transposed matrix.
void Fill(Panel& panel, const Extent& extent, const MatrixView& b) {
  panel = {};
  if (b.column_stride == 1) {
    for (std::size_t k = 0; k < extent.terms; ++k) {
      std::copy_n(b.values + k * b.row_stride, extent.columns, panel.values[k]);
    }
    return;
  }
  for (std::size_t j = 0; j < extent.columns; ++j) {
    const float* column = b.values + j * b.column_stride;
    for (std::size_t k = 0; k < extent.terms; ++k) panel.values[k][j] = column[k * b.row_stride];
  }
}

// c <- c + a times the panel, for all rows of a.
TACTUS_VECTOR_CLONES void AddPanel(const ProductSizes& sizes, const Extent& extent,
                                   const MatrixView& a, const Panel& panel, float* c) {
  for (std::size_t first = 0; first < sizes.rows; first += kRows) {
    const float* left[kRows];
    const std::size_t rows = std::min(kRows, sizes.rows - first);
    // A tile that reaches beyond the last row repeats it and drops the result.
    for (std::size_t i = 0; i < kRows; ++i) {
      left[i] = a.values + (first + std::min(i, rows - 1)) * a.row_stride;
    }
    float tile[kRows][kColumns] = {};
    for (std::size_t k = 0; k < extent.terms; ++k) {
#pragma GCC unroll 4  // all rows: only then does the tile stay in registers
      for (std::size_t i = 0; i < kRows; ++i) {
        const float factor = left[i][k * a.column_stride];
        for (std::size_t j = 0; j < kColumns; ++j) tile[i][j] += factor * panel.values[k][j];
      }
    }
    for (std::size_t i = 0; i < rows; ++i) {
      float* row = c + (first + i) * sizes.columns;
      for (std::size_t j = 0; j < extent.columns; ++j) row[j] += tile[i][j];
    }
  }
}

}  // namespace

void AddProduct(const ProductSizes& sizes, const MatrixView& a, const MatrixView& b, float* c) {
  Panel panel;
  for (std::size_t term = 0; term < sizes.terms; term += kTerms) {
    for (std::size_t column = 0; column < sizes.columns; column += kColumns) {
      const Extent extent{.terms = std::min(kTerms, sizes.terms - term),
                          .columns = std::min(kColumns, sizes.columns - column)};
      Fill(panel, extent, b.From(term, column));
      AddPanel(sizes, extent, a.From(0, term), panel, c + column);
    }
  }
}

}  // namespace tactus::simulator
