// Callbacks that do nothing once their object is gone.

#pragma once

#include <memory>
#include <utility>

namespace tactus::agent {

// A member of an object whose callbacks may come late: asio hands out a completion that was already
// queued when the object dies. For objects that live on one thread, together with their callbacks.
class Lifetime {
 public:
  // `callback`, to be called only while this object lives.
  template <typename Callback>
  auto Guard(Callback callback) const {
    return [alive = std::weak_ptr<const bool>(alive_),
            callback = std::move(callback)](auto&&... arguments) mutable -> void {
      if (!alive.expired()) callback(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  // Never shared for long: the guards hold it weakly.
  const std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace tactus::agent
