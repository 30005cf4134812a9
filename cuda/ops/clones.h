// TACTUS_VECTOR_CLONES: a hot loop compiled twice, for AVX2 and for any x86-64; the loader picks.
//
// Both give the same bits: a wider vector changes no rounding, partial sums are laid out in the
// source, and "avx2" does not allow a fused multiply-add. Sanitizers instrument the loader's choice
// before they are ready, so their builds have one version.

#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TACTUS_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define TACTUS_VECTOR_CLONES
#endif
