// Code that is switched by hand.

#include "fibers/fiber.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tactus::fibers {
namespace {

TEST(FiberTest, RunsInPartsBetweenItsResumes) {
  std::string order;
  Fiber* self = nullptr;
  Fiber fiber([&] {
    order += 'b';
    self->Suspend();
    order += 'd';
  });
  self = &fiber;

  order += 'a';
  fiber.Resume();
  order += 'c';
  EXPECT_FALSE(fiber.ended());
  fiber.Resume();

  EXPECT_EQ(order, "abcd");
  EXPECT_TRUE(fiber.ended());
}

TEST(FiberTest, ManyFibersKeepTheirOwnStacks) {
  constexpr int kFibers = 500;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<int> sums(kFibers, 0);
  for (int i = 0; i < kFibers; ++i) {
    fibers.push_back(std::make_unique<Fiber>([&, i] {
      int own[64] = {};
      for (int step = 0; step < 64; ++step) {
        own[step] = i + step;
        fibers[static_cast<std::size_t>(i)]->Suspend();
      }
      for (const int value : own) sums[static_cast<std::size_t>(i)] += value;
    }));
  }

  for (int step = 0; step <= 64; ++step) {
    for (auto& fiber : fibers) fiber->Resume();
  }

  for (int i = 0; i < kFibers; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)], 64 * i + 2016);
}

// As a program does whose calls come from one thread after another.
TEST(FiberTest, AnyThreadResumesIt) {
  std::vector<int> sums;
  Fiber* self = nullptr;
  Fiber fiber([&] {
    int sum = 0;
    for (int i = 0; i < 10; ++i) {
      sum += i;
      sums.push_back(sum);
      self->Suspend();
    }
  });
  self = &fiber;

  while (!fiber.ended()) std::thread([&] { fiber.Resume(); }).join();

  EXPECT_EQ(sums, (std::vector<int>{0, 1, 3, 6, 10, 15, 21, 28, 36, 45}));
}

int Descend(int depth) {
  volatile char room[1024] = {};
  room[depth % 1024] = 1;
  return depth == 0 ? 0 : Descend(depth - 1) + room[depth % 1024];
}

TEST(FiberTest, AStackIsAsLargeAsIsSaid) {
  int depth = 0;
  Fiber fiber([&] { depth = Descend(1000); }, std::size_t{8} << 20);

  fiber.Resume();

  EXPECT_EQ(depth, 1000);
}

TEST(FiberTest, OneThatWasNeverResumedJustGoes) {
  bool ran = false;
  {
    const Fiber fiber([&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace tactus::fibers
