// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_host.hpp"

#include <poll.h>

#include <algorithm>

#include "agent/bag_files.hpp"
#include "agent/bag_output.hpp"

namespace gridctl::agent {

namespace {

constexpr Duration k_look_every = std::chrono::milliseconds{10};  // at results, while a request waits
constexpr Duration k_end_every = std::chrono::milliseconds{200};  // whether the attempt has ended
constexpr std::uint32_t k_output_bytes_max = 512 * 1024;          // of one answer

Result<void> check_here(const AttemptDir& attempt) {
  if (os::exists(attempt.path)) return {};
  return make_error(Code::not_found, "this attempt is not on this host");
}

}  // namespace

Result<wire::BagTold> BagHost::order(const wire::BagAsk& ask) {
  TRY_ASSIGN(const AttemptDir attempt, requests_.attempt(ask.job, ask.epoch));
  TRY(check_here(attempt));
  wire::BagTold told{ask.job, ask.epoch};
  if (ask.orders.empty()) {
    TRY_ASSIGN(told.orders_seen, count_orders(attempt.control()));
  } else {
    TRY_ASSIGN(const auto lock, requests_.lock(ask.job));
    TRY_ASSIGN(told.orders_seen, append_orders(attempt.control(), ask.orders_from, ask.orders));
  }
  told.output_begin = drop_output(attempt.control(), attempt.run(newest_launch(attempt)), ask.output_from);
  return told;
}

Result<void> BagHost::look(const wire::BagAsk& ask, std::uint64_t max, bool end_too, wire::BagTold& told) {
  TRY_ASSIGN(const AttemptDir attempt, requests_.attempt(ask.job, ask.epoch));
  if (end_too && !told.over) {  // asked before the results are read: behind its end there come none
    TRY_ASSIGN(const auto status, read_status(attempt, clock_));
    told.over = status && status->ended_ms_ago >= 0;
  }
  const os::Path run = attempt.run(newest_launch(attempt));
  BagResults read = read_results(run, ask.results_from, std::min<std::uint64_t>(max, ask.results_max));
  told.results_from = ask.results_from;
  told.results_end = read.end;
  told.results = std::move(read.results);
  BoardView board = read_board(run);
  told.queued = board.head.queued + (told.orders_seen > board.head.orders ? 1 : 0);
  told.output_end = board.head.output_end;
  told.running = std::move(board.running);
  return {};
}

wire::BagReply BagHost::answer(const wire::BagRequest& request, const std::function<bool()>& wanted) {
  wire::BagReply reply;
  for (const wire::BagAsk& ask : request.workers) {
    Result<wire::BagTold> told = order(ask);
    reply.workers.push_back(told ? *std::move(told) : wire::BagTold{ask.job, ask.epoch, std::move(told).error()});
  }
  const BootTime began = clock_.boot();
  BootTime give_up = began + std::min(request.wait, wire::k_bag_wait_max);
  BootTime end_at = began;  // when to look for it
  std::optional<BootTime> news;
  for (;;) {
    std::uint64_t room = wire::k_bag_results_max;
    std::size_t running_room = wire::k_bag_running_max;
    bool any = false;
    const bool end_too = clock_.boot() >= end_at;
    if (end_too) end_at = clock_.boot() + k_end_every;
    for (std::size_t i = 0; i < reply.workers.size(); ++i) {
      wire::BagTold& told = reply.workers[i];
      if (!told.error)
        if (auto looked = look(request.workers[i], room, end_too, told); !looked)
          told.error = std::move(looked).error();
      room -= std::min<std::uint64_t>(room, told.results.size());
      told.running.resize(std::min(told.running.size(), running_room));
      running_room -= told.running.size();
      any = any || told.error || told.over || !told.results.empty();
    }
    const BootTime now = clock_.boot();
    if (any && !news) {
      news = now;
      give_up = std::min(give_up, now + std::min(request.gather, wire::k_bag_wait_max));
    }
    if (now >= give_up || room == 0 || !wanted()) return reply;
    os::pause_for(std::min(k_look_every, give_up - now));
  }
}

Result<wire::LogReply> BagHost::output(const wire::LogRequest& request, std::string& bytes) {
  TRY_ASSIGN(const AttemptDir attempt, requests_.attempt(request.job, request.epoch));
  TRY(check_here(attempt));
  const os::Path run = attempt.run(newest_launch(attempt));
  const auto begin = read_number(attempt.control() / k_output_from_file);
  const std::uint64_t from = begin && begin->has_value() ? static_cast<std::uint64_t>(**begin) : 0;
  TRY_ASSIGN(OutputSlice slice,
             read_output(run, from, request.offset, std::min(request.max_bytes, k_output_bytes_max)));
  const std::uint64_t end = read_board(run).head.output_end;  // behind it lies what was not finished
  bytes = slice.bytes.substr(0, end - std::min(end, slice.offset));
  return wire::LogReply{slice.offset, end};
}

}  // namespace gridctl::agent
