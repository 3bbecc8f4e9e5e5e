// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "agent/attempt_dir.hpp"
#include "wire/frame.hpp"

namespace gridctl::agent {

namespace {

constexpr std::uint64_t k_reserve_bytes = 64 * 1024;  // of results at once
constexpr std::size_t k_board_head = 4;               // words before the places
constexpr std::uint64_t k_board_bytes_max = 8 * (k_board_head + wire::k_bag_running_max);
constexpr std::uint32_t k_orders_mark = 0x3142'4247;  // "GBB1"

// Precedes each group of orders; its length is repeated after the group, so that the last group can be found from the
// end.
struct OrdersHead {
  std::uint32_t mark = k_orders_mark, bytes = 0, crc = 0, count = 0;
  std::uint64_t from = 0;
};
constexpr std::uint64_t k_orders_frame = sizeof(OrdersHead) + sizeof(std::uint32_t);

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

bool read_at(int fd, void* into, std::size_t bytes, std::uint64_t offset) {
  return os::read_exactly(fd, static_cast<std::byte*>(into), bytes, offset).has_value();
}

std::uint32_t crc_of(const OrdersHead& head, std::string_view payload) {
  OrdersHead bare = head;
  bare.crc = 0;
  return wire::crc32(payload, wire::crc32(bytes_of(bare)));
}

struct OrdersGroup {
  OrdersHead head;
  std::string payload;
  [[nodiscard]] std::uint64_t size() const { return k_orders_frame + payload.size(); }
};

// Returns the group at this offset; nullopt: there is no complete one.
std::optional<OrdersGroup> group_at(int fd, std::uint64_t offset) {
  OrdersGroup group;
  if (!read_at(fd, &group.head, sizeof group.head, offset)) return std::nullopt;
  if (group.head.mark != k_orders_mark || group.head.bytes > wire::k_frame_max) return std::nullopt;
  group.payload.resize(group.head.bytes);
  std::uint32_t bytes = 0;
  if (!read_at(fd, group.payload.data(), group.payload.size(), offset + sizeof group.head) ||
      !read_at(fd, &bytes, sizeof bytes, offset + sizeof group.head + group.payload.size()))
    return std::nullopt;
  if (bytes != group.head.bytes || crc_of(group.head, group.payload) != group.head.crc) return std::nullopt;
  return group;
}

std::optional<std::uint64_t> size_of(const os::Fd& file) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(info.st_size);
}

struct OrdersEnd {
  std::uint64_t count = 0, bytes = 0;  // of whole groups
};

// Reads from the last group; if a writer died in the middle of one, from all of them.
OrdersEnd orders_end(const os::Fd& file, std::uint64_t size) {
  std::uint32_t bytes = 0;
  if (size >= k_orders_frame && read_at(file.get(), &bytes, sizeof bytes, size - sizeof bytes) &&
      bytes <= size - k_orders_frame)
    if (const auto last = group_at(file.get(), size - k_orders_frame - bytes);
        last && last->size() == k_orders_frame + bytes)
      return {last->head.from + last->head.count, size};
  OrdersEnd end;
  while (const auto group = group_at(file.get(), end.bytes)) {
    end.count = group->head.from + group->head.count;
    end.bytes += group->size();
  }
  return end;
}

struct ResultRecord {
  std::uint64_t index, count, order;
  std::int64_t began;
  std::uint64_t offset, dropped;
  std::uint32_t ms, peak_kib, bytes, error_bytes;
  std::uint8_t end, exit_code, signal, has_files;  // then `count` tells their bytes
  std::uint32_t crc;
};
static_assert(sizeof(ResultRecord) == 72 && std::is_trivially_copyable_v<ResultRecord>);

std::uint32_t crc_of(const ResultRecord& record) { return wire::crc32(bytes_of(record).substr(0, sizeof record - 4)); }

ResultRecord record_of(const wire::TaskResult& result) {
  ResultRecord record{result.index,
                      result.count,
                      result.order,
                      result.began.ms,
                      result.offset,
                      result.dropped,
                      result.ms,
                      result.peak_kib,
                      result.bytes,
                      result.error_bytes,
                      static_cast<std::uint8_t>(result.end),
                      result.exit_code,
                      result.signal,
                      result.file_bytes > 0,
                      0};
  if (result.file_bytes > 0) record.count = result.file_bytes;
  record.crc = crc_of(record);
  return record;
}

std::optional<wire::TaskResult> result_of(const ResultRecord& record) {
  if (record.crc != crc_of(record) || record.end > static_cast<std::uint8_t>(wire::TaskEnd::no_space))
    return std::nullopt;
  const bool files = record.has_files != 0;
  return wire::TaskResult{record.index,     files ? 1 : record.count,  record.order,   static_cast<wire::TaskEnd>(record.end),
                          record.exit_code, record.signal, {record.began}, record.ms,
                          record.peak_kib,  record.offset, record.bytes,   record.error_bytes,
                          record.dropped,   files ? record.count : 0};
}

}  // namespace

Result<std::uint64_t> append_orders(const os::Path& control, std::uint64_t from,
                                    const std::vector<wire::BagOrder>& orders) {
  TRY_ASSIGN(const os::Fd file, os::open_file(control / k_orders_file, O_RDWR | O_CREAT));
  const auto size = size_of(file);
  if (!size) return errno_error(errno, "cannot look at the orders");
  const OrdersEnd end = orders_end(file, *size);
  if (from > end.count)
    return make_error(Code::refused,
                      "orders " + std::to_string(end.count) + " to " + std::to_string(from) + " are missing");
  if (from + orders.size() <= end.count) return end.count;
  if (end.bytes > k_orders_bytes_max) return make_error(Code::no_space, "this worker cannot take more orders");
  if (end.bytes < *size && ::ftruncate(file.get(), static_cast<off_t>(end.bytes)) != 0)
    return errno_error(errno, "cannot cut the orders");
  const std::vector<wire::BagOrder> fresh(orders.begin() + static_cast<std::ptrdiff_t>(end.count - from), orders.end());
  const std::string payload = wire::encode(wire::BagOrders{end.count, fresh});
  OrdersHead head;
  head.bytes = static_cast<std::uint32_t>(payload.size());
  head.count = static_cast<std::uint32_t>(fresh.size());
  head.from = end.count;
  head.crc = crc_of(head, payload);
  const std::string group = std::string(bytes_of(head)) + payload + std::string(bytes_of(head.bytes));
  const ssize_t wrote = ::pwrite(file.get(), group.data(), group.size(), static_cast<off_t>(end.bytes));
  if (wrote == static_cast<ssize_t>(group.size())) return end.count + fresh.size();
  const int problem = wrote < 0 ? errno : ENOSPC;
  [[maybe_unused]] const int cut = ::ftruncate(file.get(), static_cast<off_t>(end.bytes));
  return errno_error(problem, "cannot write the orders");
}

Result<std::uint64_t> count_orders(const os::Path& control) {
  const auto file = os::open_file(control / k_orders_file, O_RDONLY);
  if (!file && file.error().code == Code::not_found) return 0ul;
  if (!file) return file.error();
  return orders_end(*file, size_of(*file).value_or(0)).count;
}

std::vector<wire::BagOrder> OrderReader::read() {
  if (!fd_.valid())
    if (auto opened = os::open_file(file_, O_RDONLY)) fd_ = std::move(*opened);
  std::vector<wire::BagOrder> fresh;
  while (fd_.valid()) {
    const auto group = group_at(fd_.get(), offset_);
    if (!group || group->head.from != next_) break;
    auto orders = wire::parse_bag_orders(group->payload);
    if (!orders || orders->orders.size() != group->head.count) break;
    offset_ += group->size();
    next_ += group->head.count;
    for (wire::BagOrder& order : orders->orders) fresh.push_back(std::move(order));
  }
  return fresh;
}

Result<ResultWriter> ResultWriter::open(const os::Path& run) {
  TRY_ASSIGN(os::Fd file, os::open_file(run / k_results_file, O_WRONLY | O_CREAT | O_NOFOLLOW));
  return ResultWriter(std::move(file));
}

bool ResultWriter::reserve(std::uint64_t results) {
  const std::uint64_t needed = bytes_ + results * sizeof(ResultRecord);
  if (needed <= reserved_) return true;
  const int made = ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(bytes_),
                               static_cast<off_t>(needed - bytes_ + k_reserve_bytes));
  if (made != 0 && errno != EOPNOTSUPP && errno != ENOSYS) return false;
  reserved_ = needed + k_reserve_bytes;
  return true;
}

bool ResultWriter::append(const wire::TaskResult& result) {
  const ResultRecord record = record_of(result);
  if (::pwrite(file_.get(), &record, sizeof record, static_cast<off_t>(bytes_)) != sizeof record) return false;
  bytes_ += sizeof record;
  return true;
}

BagResults read_results(const os::Path& run, std::uint64_t from, std::uint64_t max) {
  const auto file = open_hostile(run, k_results_file);
  if (!file) return {from, 0, {}};
  BagResults read{from, file->size / sizeof(ResultRecord), {}};
  for (std::uint64_t number = from; number < read.end && read.results.size() < max; ++number) {
    ResultRecord record{};
    if (!read_at(file->fd.get(), &record, sizeof record, number * sizeof record)) break;
    const auto result = result_of(record);
    if (!result) {
      read.end = number;
      break;
    }
    read.results.push_back(*result);
  }
  return read;
}

Result<Board> Board::make(const os::Path& run, std::size_t places) {
  TRY_ASSIGN(const os::Fd file, os::open_file(run / k_board_file, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW));
  const std::size_t bytes = (k_board_head + places) * sizeof(std::uint64_t);
  if (::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)) != 0)  // no hole: a full disk would kill the runner
    return make_error(Code::no_space, "there is no room for the table of tasks that run");
  void* words = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (words == MAP_FAILED) return errno_error(errno, "cannot map the table of tasks that run");
  return Board(static_cast<std::uint64_t*>(words), places);
}

Board::~Board() {
  if (words_ != nullptr) ::munmap(words_, (k_board_head + places_) * sizeof(std::uint64_t));
}

void Board::tell(const BoardHead& head) {
  const std::uint64_t values[] = {head.orders, head.queued, head.output_end};
  for (std::size_t i = 0; i < std::size(values); ++i)
    std::atomic_ref(words_[i]).store(values[i], std::memory_order_relaxed);
}

void Board::set(std::size_t place, std::optional<std::uint64_t> index) {
  std::atomic_ref(words_[k_board_head + place]).store(index ? *index + 1 : 0, std::memory_order_relaxed);
}

BoardView read_board(const os::Path& run) {
  BoardView view;
  const auto file = open_hostile(run, k_board_file);
  if (!file || file->size > k_board_bytes_max || file->size < k_board_head * sizeof(std::uint64_t)) return view;
  std::vector<std::uint64_t> words(file->size / sizeof(std::uint64_t));
  if (!read_at(file->fd.get(), words.data(), words.size() * sizeof(std::uint64_t), 0)) return view;
  view.head = {words[0], words[1], words[2]};
  for (std::size_t place = k_board_head; place < words.size(); ++place)
    if (words[place] > 0 && words[place] <= wire::k_bag_index_max) view.running.push_back(words[place] - 1);
  return view;
}

}  // namespace gridctl::agent
