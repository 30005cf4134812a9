#include "fibers/fiber.h"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <utility>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tactus::fibers {
namespace {

namespace context = boost::context::detail;

constexpr std::size_t kPage = 4096;

// With a guard page below. The tops of stacks do not fall on the same lines of a cache although all
// of them begin at a page: so many bytes of a top stay unused, different for each stack.
class Stack {
 public:
  explicit Stack(std::size_t bytes) : bytes_((bytes + kPage - 1) / kPage * kPage + kPage) {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    TACTUS_CHECK(memory_ != MAP_FAILED && ::mprotect(memory_, kPage, PROT_NONE) == 0);
  }
  ~Stack() { ::munmap(memory_, bytes_); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  char* bottom() const { return static_cast<char*>(memory_) + kPage; }
  std::size_t size() const {
    constexpr std::size_t kLine = 64;
    constexpr std::size_t kColours = 61;
    const auto end = reinterpret_cast<std::uintptr_t>(memory_) + bytes_;
    return bytes_ - kPage - end / kPage % kColours * kLine;
  }

 private:
  const std::size_t bytes_;
  void* memory_;
};

// What a sanitizer has to know of stacks that are switched; without one nothing.
class Announcer {
 public:
#if defined(__SANITIZE_ADDRESS__)
  void ToFiber(const Stack& stack) {
    __sanitizer_start_switch_fiber(&left_, stack.bottom(), stack.size());
  }
  void BackFromFiber() { __sanitizer_finish_switch_fiber(left_, nullptr, nullptr); }
  void InFiber() { __sanitizer_finish_switch_fiber(own_left_, &caller_, &caller_bytes_); }
  void ToCaller(bool for_good) {
    __sanitizer_start_switch_fiber(for_good ? nullptr : &own_left_, caller_, caller_bytes_);
  }

 private:
  void* left_ = nullptr;      // of the caller's stack
  void* own_left_ = nullptr;  // of the fiber's
  const void* caller_ = nullptr;
  std::size_t caller_bytes_ = 0;
#elif defined(__SANITIZE_THREAD__)
  ~Announcer() { __tsan_destroy_fiber(own_); }
  void ToFiber(const Stack&) {
    caller_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(own_, 0);
  }
  void BackFromFiber() {}
  void InFiber() {}
  void ToCaller(bool) { __tsan_switch_to_fiber(caller_, 0); }

 private:
  void* const own_ = __tsan_create_fiber(0);
  void* caller_ = nullptr;
#else
  void ToFiber(const Stack&) {}
  void BackFromFiber() {}
  void InFiber() {}
  void ToCaller(bool) {}
#endif
};

}  // namespace

struct Fiber::Contexts {
  explicit Contexts(std::size_t stack_bytes) : stack(stack_bytes) {}

  static void Enter(context::transfer_t caller) {
    Fiber& fiber = *static_cast<Fiber*>(caller.data);
    fiber.contexts_->caller = caller.fctx;
    fiber.contexts_->announcer.InFiber();
    fiber.body_();
    fiber.ended_ = true;
    fiber.contexts_->announcer.ToCaller(/*for_good=*/true);
    context::jump_fcontext(fiber.contexts_->caller, nullptr);
  }

  Stack stack;
  Announcer announcer{};
  context::fcontext_t own =
      context::make_fcontext(stack.bottom() + stack.size(), stack.size(), &Enter);
  context::fcontext_t caller = nullptr;
};

Fiber::Fiber(std::function<void()> body, std::size_t stack_bytes)
    : contexts_(std::make_unique<Contexts>(stack_bytes)), body_(std::move(body)) {}

Fiber::~Fiber() { TACTUS_CHECK(ended_ || !started_); }

void Fiber::Resume() {
  TACTUS_CHECK(!ended_);
  started_ = true;
  contexts_->announcer.ToFiber(contexts_->stack);
  contexts_->own = context::jump_fcontext(contexts_->own, this).fctx;
  contexts_->announcer.BackFromFiber();
}

void Fiber::Suspend() {
  contexts_->announcer.ToCaller(/*for_good=*/false);
  contexts_->caller = context::jump_fcontext(contexts_->caller, nullptr).fctx;
  contexts_->announcer.InFiber();
}

}  // namespace tactus::fibers
