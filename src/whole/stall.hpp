// SPDX-License-Identifier: Apache-2.0
// Decides whether a running job has gone without a checkpoint for too long, and what to report. A value: no I/O, no
// clock.
#pragma once

#include <string>

#include "base/time.hpp"
#include "whole/watch.hpp"

namespace gridctl::whole {

struct StallRules {
  Duration patience = std::chrono::minutes{2};     // of files that wait to be taken
  Duration empty = std::chrono::minutes{30};       // of a directory without any file
};

class Stall {
 public:
  explicit Stall(BootTime began, const StallRules& rules = {}) : rules_(rules), since_(began) {}
  // Notes the result of a look. `taken`: a snapshot was made of it, or already has the same content.
  void look(const Verdict& verdict, bool taken, BootTime now);
  // Returns the message for people, with the file to blame and the line for the job file; "" while all is well.
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  [[nodiscard]] std::string text(const Verdict& verdict, Duration waited) const;

  StallRules rules_;
  BootTime since_;           // nothing was taken
  bool waiting_ = false;     // there is something that could be
  Duration longest_{};       // such a wait that ended well
  Duration told_{};          // the wait that `message_` tells of
  std::string message_;
};

}  // namespace gridctl::whole
