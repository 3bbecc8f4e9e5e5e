// SPDX-License-Identifier: Apache-2.0
#include "store/pickle.hpp"

#include <unordered_map>
#include <utility>

namespace gridctl::store {

namespace {
constexpr std::size_t k_class_name_max = 512;   // bytes of a module's and a class's name
constexpr std::size_t k_names_max = 64u << 20;  // bytes of the names of all objects: a byte of a pickle makes one more
}  // namespace

class Unpickler {
 public:
  explicit Unpickler(ByteView bytes) : bytes_(bytes) {}

  Result<Pickle> run() {
    while (at_ < bytes_.size() && !failed_ && pickle_.root_ == nullptr) {
      if (pickle_.values_.size() > k_pickle_values_max) return bad("the pickle is too large to read");
      const auto op = static_cast<unsigned char>(bytes_[at_++]);
      if (!literal(op) && !container(op) && !object(op) && !bookkeeping(op))
        return bad("the pickle is of an unknown kind");
    }
    if (failed_ || pickle_.root_ == nullptr) return bad("the pickle is incomplete");
    return std::move(pickle_);
  }

 private:
  using Kind = PickleValue::Kind;
  // The numbers come from the format (PEP 307, PEP 3154).
  enum Op : unsigned char {
    mark = '(', stop = '.', pop = '0', pop_mark = '1', float_8 = 'G', int_4 = 'J', int_1 = 'K', int_2 = 'M', none = 'N',
    reduce = 'R', text_4 = 'X', append = 'a', build = 'b', global = 'c', appends = 'e', get_1 = 'h', get_4 = 'j',
    put_1 = 'q', put_4 = 'r', set_item = 's', tuple = 't', set_items = 'u', empty_dict = '}', empty_list = ']',
    empty_tuple = ')', bytes_4 = 'B', bytes_1 = 'C', proto = 0x80, new_object = 0x81, tuple_1 = 0x85, tuple_2 = 0x86,
    tuple_3 = 0x87, yes = 0x88, no = 0x89, long_1 = 0x8a, text_1 = 0x8c, text_8 = 0x8d, bytes_8 = 0x8e, empty_set = 0x8f,
    add_items = 0x90, frozen_set = 0x91, new_object_ex = 0x92, stack_global = 0x93, memoize = 0x94, frame = 0x95,
  };

  static Error bad(const char* why) { return make_error(Code::unsupported, why); }

  std::uint64_t number(std::size_t size) {  // little endian
    if (bytes_.size() - at_ < size) return fail();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= static_cast<std::uint64_t>(bytes_[at_ + i]) << (8 * i);
    at_ += size;
    return value;
  }
  std::string text(std::uint64_t size) {
    if (bytes_.size() - at_ < size) return fail(), std::string();
    std::string value(as_text(bytes_.subspan(at_, size)));
    at_ += size;
    return value;
  }
  std::string line() {
    const std::string_view rest = as_text(bytes_.subspan(at_));
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return fail(), std::string();
    at_ += end + 1;
    return std::string(rest.substr(0, end));
  }
  std::uint64_t fail() {
    failed_ = true;
    return 0;
  }

  PickleValue& push(Kind kind) {
    PickleValue& value = pickle_.values_.emplace_back();
    value.kind = kind;
    stack_.push_back(&value);
    return value;
  }
  void push_integer(std::int64_t integer) { push(Kind::integer).integer = integer; }
  // Replaces the stack's last values with one value made of them, in their order.
  void gather(Kind kind, std::size_t count) {
    if (stack_.size() < count) return void(fail());
    PickleValue& value = pickle_.values_.emplace_back();
    value.kind = kind;
    value.items.assign(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    stack_.push_back(&value);
  }
  PickleValue* take() {
    if (stack_.empty()) return fail(), &nothing_;
    PickleValue* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::size_t above_mark() {
    if (marks_.empty() || marks_.back() > stack_.size()) return fail();
    const std::size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return count;
  }
  // Puts the stack's last values into the one before them.
  void put_into(std::size_t count) {
    if (stack_.size() < count + 1) return void(fail());
    PickleValue& into = *stack_[stack_.size() - count - 1];
    into.items.insert(into.items.end(), stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
  }

  bool literal(unsigned char op) {
    switch (op) {
      case none: return push(Kind::none), true;
      case yes: return push_integer(1), true;
      case no: return push_integer(0), true;
      case int_1: return push_integer(static_cast<std::int64_t>(number(1))), true;
      case int_2: return push_integer(static_cast<std::int64_t>(number(2))), true;
      case int_4: return push_integer(static_cast<std::int32_t>(static_cast<std::uint32_t>(number(4)))), true;
      case long_1: return push_long(number(1)), true;
      case float_8: return push(Kind::real), number(8), true;
      case text_1:
      case bytes_1: return push_text(number(1)), true;
      case text_4:
      case bytes_4: return push_text(number(4)), true;
      case text_8:
      case bytes_8: return push_text(number(8)), true;
      default: return false;
    }
  }
  void push_text(std::uint64_t size) { push(Kind::text).text = text(size); }
  void push_long(std::uint64_t size) {
    if (size > 8) return text(size), void(push(Kind::real));  // nobody asks for its value
    const std::uint64_t value = number(size);
    const bool negative = size > 0 && size < 8 && (value >> (8 * size - 1)) != 0;
    push_integer(static_cast<std::int64_t>(negative ? value | (~std::uint64_t{0} << (8 * size)) : value));
  }

  bool container(unsigned char op) {
    switch (op) {
      case empty_list:
      case empty_set:
      case empty_tuple: return push(Kind::list), true;
      case empty_dict: return push(Kind::dictionary), true;
      case tuple_1: return gather(Kind::list, 1), true;
      case tuple_2: return gather(Kind::list, 2), true;
      case tuple_3: return gather(Kind::list, 3), true;
      case tuple:
      case frozen_set: return gather(Kind::list, above_mark()), true;
      case append: return put_into(1), true;
      case set_item: return put_into(2), true;
      case appends:
      case add_items:
      case set_items: return put_into(above_mark()), true;
      default: return false;
    }
  }

  // Returns nullptr if the names have become too long, this one or all together.
  PickleValue* push_object(const std::string& name) {
    names_ += name.size();
    if (name.size() > k_class_name_max + 1 || names_ > k_names_max) return fail(), nullptr;
    PickleValue& made = push(Kind::object);
    made.text = name;
    return &made;
  }

  bool object(unsigned char op) {
    switch (op) {
      case global: {
        const std::string module = line(), name = line();
        return push_object(module + "." + name), true;
      }
      case stack_global: {
        const std::string &name = take()->text, &module = take()->text;
        if (name.size() + module.size() > k_class_name_max) return fail(), true;  // before it is copied
        return push_object(module + "." + name), true;
      }
      case new_object_ex: take(); [[fallthrough]];  // arguments by name
      case new_object:
      case reduce: {
        const PickleValue* arguments = take();
        if (PickleValue* made = push_object(take()->text)) made->items = {arguments};  // never copied: they may be large
        return true;
      }
      case build: {
        const PickleValue* state = take();
        if (stack_.empty()) fail();
        else stack_.back()->state = state;
        return true;
      }
      default: return false;
    }
  }

  bool bookkeeping(unsigned char op) {
    switch (op) {
      case proto: return number(1), true;
      case frame: return number(8), true;
      case mark: return marks_.push_back(stack_.size()), true;
      case pop: return take(), true;
      case pop_mark: return stack_.resize(stack_.size() - above_mark()), true;
      case memoize: return keep(memo_.size()), true;
      case put_1: return keep(number(1)), true;
      case put_4: return keep(number(4)), true;
      case get_1: return recall(number(1)), true;
      case get_4: return recall(number(4)), true;
      case stop: return pickle_.root_ = take(), true;
      default: return false;
    }
  }
  void keep(std::uint64_t slot) {
    if (stack_.empty()) fail();
    else memo_[slot] = stack_.back();
  }
  void recall(std::uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) fail();
    else stack_.push_back(found->second);
  }

  ByteView bytes_;
  std::size_t at_ = 0;
  std::size_t names_ = 0;  // bytes
  bool failed_ = false;
  PickleValue nothing_;
  Pickle pickle_;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
};

bool PickleValue::is(std::string_view class_name) const {
  return kind == Kind::object && text.size() > class_name.size() && text.ends_with(class_name) &&
         text[text.size() - class_name.size() - 1] == '.';
}

const PickleValue* PickleValue::field(std::string_view name) const {
  const PickleValue* fields = kind == Kind::object ? state : this;
  if (fields == nullptr || fields->kind != Kind::dictionary) return nullptr;
  for (std::size_t i = 0; i + 1 < fields->items.size(); i += 2)
    if (fields->items[i]->kind == Kind::text && fields->items[i]->text == name) return fields->items[i + 1];
  return nullptr;
}

Result<Pickle> Pickle::parse(ByteView bytes) { return Unpickler(bytes).run(); }

}  // namespace gridctl::store
