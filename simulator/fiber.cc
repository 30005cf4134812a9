#include "simulator/fiber.h"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"

namespace tactus::simulator {
namespace {

namespace context = boost::context;

// Stacks with a guard page, whose tops do not fall on the same lines of a cache although all of
// them begin at a page: so many bytes of a top stay unused, different for each stack.
class ColouredStacks {
 public:
  context::stack_context allocate() {
    context::stack_context stack = stacks_.allocate();
    const std::size_t colour = Colour(stack);
    stack.sp = static_cast<char*>(stack.sp) - colour;
    stack.size -= colour;
    return stack;
  }

  void deallocate(context::stack_context& stack) {
    // The page of the top, which the colour did not leave, tells it again.
    const std::size_t colour = stacks_size_ - stack.size;
    stack.sp = static_cast<char*>(stack.sp) + colour;
    stack.size += colour;
    stacks_.deallocate(stack);
  }

 private:
  std::size_t Colour(const context::stack_context& stack) {
    constexpr std::size_t kLine = 64;
    constexpr std::size_t kPage = 4096;
    constexpr std::size_t kColours = 61;
    stacks_size_ = stack.size;
    return reinterpret_cast<std::uintptr_t>(stack.sp) / kPage % kColours * kLine;
  }

  context::protected_fixedsize_stack stacks_{Fiber::kStackBytes};
  std::size_t stacks_size_ = 0;  // of a stack with all its bytes
};

}  // namespace

struct Fiber::Contexts {
  context::fiber own{};
  context::fiber caller{};
};

Fiber::Fiber(std::function<void()> body)
    : contexts_(std::make_unique<Contexts>()), body_(std::move(body)) {
  contexts_->own = context::fiber(std::allocator_arg, ColouredStacks{},
                                  [this](context::fiber&& caller) {  // NOLINT: Boost's signature
                                    contexts_->caller = std::move(caller);
                                    started_ = true;
                                    body_();
                                    ended_ = true;
                                    return std::move(contexts_->caller);
                                  });
}

Fiber::~Fiber() { TACTUS_CHECK(ended_ || !started_); }

void Fiber::Resume() {
  TACTUS_CHECK(!ended_);
  contexts_->own = std::move(contexts_->own).resume();
}

void Fiber::Suspend() { contexts_->caller = std::move(contexts_->caller).resume(); }

}  // namespace tactus::simulator
