// SPDX-License-Identifier: Apache-2.0
// The receipts of one invitation, as the lent machine keeps them: wire/receipts.hpp names the files.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "lend/receipt.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::lend {

// Makes the receipts of attempts that have ended, in the folder of an invitation; draws the machine's key first. Returns how
// many. Interrupted anywhere and called again, it leaves one receipt for each attempt.
[[nodiscard]] Result<std::size_t> make_receipts(const os::Path& invitation, os::Clock& clock);

struct ReceiptBook {
  std::vector<std::string> lines;  // receipts with the answers to them; damage stays in them
  std::uint64_t head = 0;          // that somebody knows
};
[[nodiscard]] Result<ReceiptBook> read_receipts(const os::Path& invitation);

// Before the folder of an invitation goes: writes its receipts to a file in `into`. Returns its path; empty: there are none.
[[nodiscard]] Result<os::Path> save_receipts(const os::Path& invitation, const os::Path& into, const std::string& name);

}  // namespace gridctl::lend
