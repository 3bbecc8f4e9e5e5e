// SPDX-License-Identifier: Apache-2.0
// Defines messages about objects at a remote that keeps copies on a host. Feature word "places"; gridctl-agent(7),
// REMOTES.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/message.hpp"

namespace gridctl::wire {

inline constexpr std::string_view k_remotes_feature = "places";
inline constexpr std::size_t k_remote_folder_max = 4096;              // bytes of a path
inline constexpr std::size_t k_remote_name_max = 512;                 // bytes of an object's name
inline constexpr std::uint64_t k_remote_object_max = 256ull << 20;    // bytes of one object
inline constexpr std::uint64_t k_remote_read_max = 8ull << 20;        // bytes of one place_read
inline constexpr std::uint64_t k_remote_listing_max = 1024ull << 20;  // bytes of one listing's data

enum class RemoteDeed : std::uint8_t {
  make,     // the folder, where its parent is: reply {}
  list,     // reply {}, data: a line "SIZE NAME" for each object whose name begins with `name`, by name; end
  read,     // reply {}, data, end
  put,      // data and end follow the request; reply when it is whole and durable
  put_new,  // the same; the reply says whether the name was free
  remove,   // reply {}
};

struct RemoteRequest {
  RemoteDeed deed = RemoteDeed::list;
  std::string folder;        // absolute, or in the user's home
  bool marked = true;        // refuse a folder that does not hold the mark
  std::string name;          // of the object; of a listing the prefix
  std::uint64_t offset = 0;  // of a read
  std::uint64_t bytes = 0;   // of a read, a put
  bool operator==(const RemoteRequest&) const = default;
};
// Answers put and put_new: false if the name was taken.
struct RemoteStored {
  bool stored = false;
};

[[nodiscard]] bool is_remote_request(std::string_view operation);
GRIDCTL_MESSAGE(RemoteRequest, parse_remote_request)  // op "place_make", "place_list", …
GRIDCTL_MESSAGE(RemoteStored, parse_remote_stored)

}  // namespace gridctl::wire
