// SPDX-License-Identifier: Apache-2.0
// A remote of which one change fails, or happens without an answer.
#pragma once

#include <map>
#include <memory>

#include "store/backend.hpp"
#include "support/fault_points.hpp"

namespace gridctl::testing {

// Changes of all its openings are counted from 1.
struct RemoteFault {
  int at = 0;  // 0: none
  Fate fate = Fate::well;
  int changes = 0;
  std::map<Point, int> met;
  [[nodiscard]] Fate pass(Point point) {
    ++met[point];
    return ++changes == at ? fate : Fate::well;
  }
};

class FaultyRemote : public store::Backend {
 public:
  FaultyRemote(std::unique_ptr<store::Backend> behind, RemoteFault& fault) : behind_(std::move(behind)), fault_(fault) {}
  Result<std::vector<store::Object>> list(std::string_view prefix) override { return behind_->list(prefix); }
  Result<Bytes> read(std::string_view name, std::uint64_t offset, std::size_t size) override {
    return behind_->read(name, offset, size);
  }
  Result<void> put(std::string_view name, std::uint64_t size, const store::ReadAt& content, const store::Moved& moved) override {
    return pass(Point::remote_put, [&] { return behind_->put(name, size, content, moved); });
  }
  Result<bool> put_new(std::string_view name, ByteView content) override {
    return pass(Point::remote_put_new, [&] { return behind_->put_new(name, content); });
  }
  Result<void> remove(std::string_view name) override {
    return pass(Point::remote_remove, [&] { return behind_->remove(name); });
  }

 private:
  template <class Change>
  auto pass(Point point, Change change) -> decltype(change()) {
    const Fate fate = fault_.pass(point);
    if (fate == Fate::fails) return make_error(Code::host_unreachable, "the remote does not answer");
    auto done = change();
    if (fate == Fate::lost) return make_error(Code::timed_out, "the remote's answer is lost");
    return done;
  }
  std::unique_ptr<store::Backend> behind_;
  RemoteFault& fault_;
};

}  // namespace gridctl::testing
