// SPDX-License-Identifier: Apache-2.0
#include "wire/remote.hpp"

#include "base/names.hpp"
#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {

constexpr Names<RemoteDeed, RemoteDeed::remove> deed_name{"place_make", "place_list",    "place_read",
                                                        "place_put",  "place_put_new", "place_remove"};
constexpr auto deed_of = [](std::string_view name) { return scan(deed_name, RemoteDeed::remove)(name); };

}  // namespace

template <class R>
void fields(R& r, Of<R, RemoteRequest>& m) {
  r.word("op", m.deed, deed_name, deed_of);
  r("folder", m.folder, k_remote_folder_max)("marked", m.marked).check(!m.folder.empty(), "does not name a folder");
  r.added("name", m.name, k_remote_name_max).added("offset", m.offset);
  r.added("bytes", m.bytes, m.deed == RemoteDeed::read ? k_remote_read_max : k_remote_object_max);
}

template <class R>
void fields(R& r, Of<R, RemoteStored>& m) {
  r("stored", m.stored);
}

bool is_remote_request(std::string_view operation) { return deed_of(operation).has_value(); }

GRIDCTL_REPLY(RemoteRequest, parse_remote_request, "remote request")
GRIDCTL_REPLY(RemoteStored, parse_remote_stored, "reply of a remote")

}  // namespace gridctl::wire
