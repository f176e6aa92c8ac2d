// A simulated accelerator for tests: a second torch device on host memory that is as treacherous as a real one.
//
// Every operator runs the CPU's own kernel, at once, on tensors that alias the "device" memory, so results equal the
// CPU's to the bit. What is simulated is everything around the arithmetic: streams whose copies come as late as the
// program allows, poisoned memory, refused mixtures of devices, counted host syncs, a full memory, a lost device.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

using at::IValue;
using at::Tensor;
using c10::DataPtr;
using c10::Storage;

constexpr int kDevices = 2;
constexpr auto kSim = c10::DeviceType::PrivateUse1;
constexpr c10::DispatchKeySet kSimKeys(c10::DispatchKey::PrivateUse1);
constexpr int kPoison = 0xFF;  // NaN in every float type, -1 in every signed integer

// ---------------------------------------------------------------------------------------------------------------
// The state of all devices, behind one mutex.

// Which work something comes after: for each lane (a stream of a device), the number of its last launch.
using Clock = std::map<int64_t, int64_t>;

void merge(Clock& into, const Clock& other) {
  for (auto [lane, number] : other) into[lane] = std::max(into[lane], number);
}

struct Copy {  // not carried out yet
  int64_t number;
  Clock after;
  Tensor to, from;  // CPU tensors over the memory of both sides: they keep it alive, as CUDA's host allocator does
};

struct Lane {
  Clock clock;
  std::deque<Copy> queue;
};

struct Block {  // one allocation of device memory
  int64_t size;
  int device;
  int64_t home;  // the lane it was allocated on: freed, it may be handed out again there at once
  Clock uses;
  std::set<int64_t> recorded;
};

struct Device {
  int64_t allocated = 0, peak = 0, reserved = 0, limit = int64_t{16} << 30;
  int64_t launched = 0;
  bool lost = false;
  at::Generator generator;
};

enum class OnSync { kNothing, kWarn, kError };

struct World {
  std::mutex mutex;
  std::array<Device, kDevices> devices;
  std::map<int64_t, Lane> lanes;
  std::unordered_map<const void*, Block> blocks;
  std::map<const char*, size_t> pinned;
  Clock host;  // what the host has waited for
  std::map<std::string, int64_t> syncs;
  OnSync on_sync = OnSync::kNothing;
  int64_t launches = 0, unrecorded = 0, streams = 0;
  int64_t lose_after = -1;
  std::string lose_once;
  pid_t owner = 0;  // the process that initialised the devices
};

World& world = *new World;  // never destroyed: tensors die after static objects do

thread_local int current_device = 0;
thread_local std::array<c10::StreamId, kDevices> current_stream{};
thread_local int computing = -1;  // the device whose operator this thread runs: what it allocates is device memory

c10::Device sim(int index) { return {kSim, static_cast<c10::DeviceIndex>(index)}; }

int64_t lane_of(const c10::Stream& stream) { return stream.id() * kDevices + stream.device_index(); }
int64_t lane_here(int device) { return current_stream[device] * kDevices + device; }

void check(int device) {
  TORCH_CHECK(!world.owner || world.owner == getpid(),
              "Cannot re-initialize sim in forked subprocess. Use the 'spawn' start method");
  if (world.devices[device].lost)
    throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, 719,
                                c10::str("sim error: unspecified launch failure, sim:", device, " is lost"));
}

// Everything that touches the world happens inside a section. No tensor or storage that Python may know may gain or
// lose an owner there: that can need Python's global lock, whose holder may wait for the mutex. So finished copies are
// kept until the mutex is given back.
class Section {
  std::vector<Copy> finished_;
  std::lock_guard<std::mutex> lock_{world.mutex};

 public:
  void complete(const Clock& clock) {
    for (auto [lane, number] : clock) {
      auto& queue = world.lanes[lane].queue;
      while (!queue.empty() && queue.front().number <= number) {
        Copy copy = std::move(queue.front());
        queue.pop_front();
        complete(copy.after);
        at::AutoDispatchBelowADInplaceOrView plain;
        copy.to.copy_(copy.from);
        finished_.push_back(std::move(copy));
      }
    }
  }

  bool completed(const Clock& clock) const {
    for (auto [lane, number] : clock) {
      const auto& queue = world.lanes[lane].queue;
      if (!queue.empty() && queue.front().number <= number) return false;
    }
    return true;
  }

  void synchronise(const Clock& clock) {
    complete(clock);
    merge(world.host, clock);
  }

  // Work for the current stream, with the memory it touches; gives the work's number.
  int64_t issue(int device, const std::vector<const void*>& touched) {
    auto& state = world.devices[device];
    if (device == 0 && state.launched == world.lose_after) {
      // Whoever removes the file loses its device: once, however many processes run and however often they are retried.
      state.lost |= unlink(world.lose_once.c_str()) == 0;
      world.lose_after = -1;
    }
    check(device);
    ++state.launched, ++world.launches;
    const auto lane = lane_here(device);
    const auto number = ++world.lanes[lane].clock[lane];
    for (const auto* memory : touched)
      if (auto block = world.blocks.find(memory); block != world.blocks.end()) block->second.uses[lane] = number;
    return number;
  }

  // An operator: it computes now, so all that its stream has to wait for must be there.
  Clock& launch(int device, const std::vector<const void*>& touched) {
    issue(device, touched);
    auto& clock = world.lanes[lane_here(device)].clock;
    complete(clock);
    return clock;
  }

  void queue(int device, const Tensor& to, const Tensor& from, const void* touched) {
    auto& lane = world.lanes[lane_here(device)];
    const Clock after = lane.clock;
    lane.queue.push_back({issue(device, {touched}), after, to, from});
  }
};

// The host waits for the device. Waiting on purpose (synchronize) is only counted; by the way, it may be forbidden.
void host_waits(const std::string& what, bool on_purpose) {
  OnSync then;
  {
    Section section;
    ++world.syncs[what];
    then = on_purpose ? OnSync::kNothing : world.on_sync;
  }
  TORCH_CHECK(then != OnSync::kError, "called a synchronizing operation: ", what);
  if (then == OnSync::kWarn) TORCH_WARN("called a synchronizing operation: ", what);
}

// ---------------------------------------------------------------------------------------------------------------
// Memory.

void* take(size_t bytes, int device) {
  if (bytes == 0) return nullptr;
  const int64_t size = (bytes + 511) / 512 * 512;  // CUDA's granularity, and more than any kernel's alignment
  auto& state = world.devices[device];
  {
    Section section;
    if (!world.owner) world.owner = getpid();
    check(device);
    TORCH_CHECK_WITH(OutOfMemoryError, state.allocated + size <= state.limit, "sim out of memory. Tried to allocate ",
                     size, " bytes on ", sim(device), ", which has ", state.limit - state.allocated, " of ",
                     state.limit, " bytes free");
    state.allocated += size;
    state.peak = std::max(state.peak, state.allocated);
    state.reserved = std::max(state.reserved, state.allocated);
  }
  void* memory = std::aligned_alloc(512, size);
  TORCH_CHECK(memory, "the host is out of memory");
  std::memset(memory, kPoison, size);
  Section section;
  world.blocks[memory] = Block{size, device, lane_here(device), {}, {}};
  return memory;
}

c10::Allocator* const host_allocator = c10::GetCPUAllocator();

void give(void* memory) {
  if (!memory) return;
  int64_t size = 0;
  {
    Section section;
    if (auto found = world.blocks.find(memory); found != world.blocks.end()) {
      const auto& block = found->second;
      size = block.size;
      world.devices[block.device].allocated -= size;
      // Safe if the stream that will get the memory next, or the host, has waited for every other stream's last use.
      for (auto [lane, number] : block.uses)
        world.unrecorded += lane != block.home && !block.recorded.count(lane) &&
                            world.lanes[block.home].clock[lane] < number && world.host[lane] < number;
      world.blocks.erase(found);
    }
  }
  if (!size) return host_allocator->raw_deleter()(memory);
  std::memset(memory, kPoison, size);
  std::free(memory);
}

void record_use(const DataPtr& memory, const c10::Stream& stream) {
  Section section;
  if (auto block = world.blocks.find(memory.get()); block != world.blocks.end())
    block->second.recorded.insert(lane_of(stream));
}

struct SimAllocator final : c10::DeviceAllocator {
  DataPtr allocate(size_t bytes) override {
    auto* memory = take(bytes, current_device);
    return {memory, memory, &give, sim(current_device)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool initialized() override { return world.owner != 0; }
  void emptyCache(c10::MempoolId_t) override {
    Section section;
    for (auto& device : world.devices) device.reserved = device.allocated;
  }
  void recordStream(const DataPtr& memory, c10::Stream stream) override { record_use(memory, stream); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    Section section;
    const auto& device = world.devices.at(index);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0].current = device.allocated, stats.allocated_bytes[0].peak = device.peak;
    stats.reserved_bytes[0].current = device.reserved, stats.reserved_bytes[0].peak = device.reserved;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex index) override {
    TORCH_CHECK(world.owner, "Invalid device argument ", static_cast<int>(index), ": did you call init?");
    Section section;
    world.devices.at(index).peak = world.devices.at(index).allocated;
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    Section section;
    const auto& device = world.devices.at(index);
    return {std::max<int64_t>(0, device.limit - device.reserved), device.limit};
  }
} sim_allocator;

// Stands in for the CPU's allocator, so that what a CPU kernel allocates for a sim operator (results and scratch) is
// device memory: poisoned, counted and limited. To all other code it is the allocator there was before.
struct HostAllocator final : c10::Allocator {
  DataPtr allocate(size_t bytes) override {
    if (computing < 0) return host_allocator->allocate(bytes);
    auto* memory = take(bytes, computing);
    return {memory, memory, &give, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

struct PinnedAllocator final : c10::Allocator {
  DataPtr allocate(size_t bytes) override {
    const size_t size = std::max<size_t>(bytes, 1);
    auto* memory = static_cast<char*>(std::aligned_alloc(64, (size + 63) / 64 * 64));
    TORCH_CHECK(memory, "the host is out of memory");
    std::memset(memory, kPoison, size);
    Section section;
    world.pinned[memory] = size;
    return {memory, memory, raw_deleter(), at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return [](void* memory) {
      Section section;
      world.pinned.erase(static_cast<char*>(memory));
      std::free(memory);
    };
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
} pinned_allocator;

bool is_pinned(const void* data) {
  Section section;
  auto after = world.pinned.upper_bound(static_cast<const char*>(data));
  return after != world.pinned.begin() && (--after, static_cast<const char*>(data) < after->first + after->second);
}

// ---------------------------------------------------------------------------------------------------------------
// Random numbers: a CPU generator that belongs to the device.

struct SimGenerator final : c10::GeneratorImpl {
  at::Generator inner;
  SimGenerator(int index, at::Generator generator)
      : GeneratorImpl(sim(index), kSimKeys), inner(std::move(generator)) {}
  void set_current_seed(uint64_t seed) override { inner.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { inner.set_offset(offset); }
  uint64_t get_offset() const override { return inner.get_offset(); }
  uint64_t current_seed() const override { return inner.current_seed(); }
  uint64_t seed() override { return inner.seed(); }
  void set_state(const c10::TensorImpl& state) override { inner.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return inner.unsafeGetGeneratorImpl()->get_state();
  }
  SimGenerator* clone_impl() const override { return new SimGenerator(device().index(), inner.clone()); }
};

at::Generator make_generator(int device) {
  return at::make_generator<SimGenerator>(device < 0 ? current_device : device,
                                          at::make_generator<at::CPUGeneratorImpl>());
}

const at::Generator& default_generator(int device) {
  static std::once_flag once;  // not while the library loads: torch may not be ready for generators then
  std::call_once(once, [] {
    for (int i = 0; i < kDevices; ++i) world.devices[i].generator = make_generator(i);
  });
  return world.devices.at(device < 0 ? current_device : device).generator;
}

// ---------------------------------------------------------------------------------------------------------------
// Operators.

// The same memory as a storage of another device.
Storage rehome(const Storage& storage, c10::Device device) {
  auto* owner = new Storage(storage);
  DataPtr memory(const_cast<void*>(storage.data()), owner, [](void* p) { delete static_cast<Storage*>(p); }, device);
  auto* allocator = device.is_cpu() ? c10::GetCPUAllocator() : static_cast<c10::Allocator*>(&sim_allocator);
  return Storage(Storage::use_byte_size_t(), storage.nbytes(), std::move(memory), allocator, /*resizable=*/true);
}

void copy_shape(const Tensor& to, const Tensor& from) {
  to.unsafeGetTensorImpl()->set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
}

Tensor on_storage(Storage storage, const Tensor& like) {
  const auto key = storage.device().is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::PrivateUse1;
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
  copy_shape(tensor, like);
  return tensor;
}

Tensor as_cpu(const Tensor& t) { return on_storage(rehome(t.storage(), at::kCPU), t); }

// One call of an operator: its arguments as CPU tensors, its results as sim tensors.
class Call {
  const std::string& name_;
  std::unordered_map<c10::StorageImpl*, Storage> to_cpu_, to_sim_;  // one alias for each storage, so views stay views
  std::unordered_map<c10::StorageImpl*, c10::DispatchKeySet> keys_;  // of the tensor a view is of, by its alias
  struct Pair {
    Tensor cpu, sim;
  };
  std::unordered_map<c10::TensorImpl*, Pair> pairs_;  // by the alias

 public:
  int device = -1;
  std::vector<const void*> touched;

  explicit Call(const std::string& name) : name_(name) {}

  void claim(c10::Device where) {
    if (where.type() == kSim && device < 0) device = where.index();
    TORCH_CHECK(where == sim(device), "Expected all tensors to be on the same device, but found at least two devices, ",
                sim(device), " and ", where, "! (when checking arguments of ", name_, ")");
  }

  Storage down(const Storage& storage) {
    claim(storage.device());
    auto& alias = to_cpu_[storage.unsafeGetStorageImpl()];
    if (!alias) {
      alias = rehome(storage, at::kCPU);
      to_sim_[alias.unsafeGetStorageImpl()] = storage;
      touched.push_back(storage.data());
    }
    return alias;
  }

  // Kernels take a scalar that lives on the host by value, so a 0-d CPU tensor may be read, though never written.
  Tensor down(const Tensor& t, bool scalar_from_host) {
    if (!t.defined() || (scalar_from_host && t.is_cpu() && t.dim() == 0)) return t;
    Tensor alias = on_storage(down(t.storage()), t);
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) alias.unsafeGetTensorImpl()->set_wrapped_number(true);
    pairs_[alias.unsafeGetTensorImpl()] = {alias, t};
    keys_[alias.storage().unsafeGetStorageImpl()] = t.key_set();
    return alias;
  }

  const Storage& up(const Storage& cpu) {
    auto& alias = to_sim_[cpu.unsafeGetStorageImpl()];
    if (!alias) alias = rehome(cpu, sim(device));
    return alias;
  }

  Tensor up(const Tensor& cpu) {
    if (!cpu.defined()) return cpu;
    if (auto found = pairs_.find(cpu.unsafeGetTensorImpl()); found != pairs_.end()) return found->second.sim;
    const auto keys = keys_.find(cpu.storage().unsafeGetStorageImpl());
    if (keys == keys_.end()) return on_storage(up(cpu.storage()), cpu);
    // A view is what its base is, an inference tensor or not, whatever the mode is now.
    auto view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, Storage(up(cpu.storage())),
                                                         keys->second, cpu.dtype());
    copy_shape(view, cpu);
    return view;
  }

  // Takes over what the kernel did to its arguments themselves: resized them, or set them onto another storage.
  void settle() {
    for (auto& [sim, cpu] : to_cpu_) {
      if (sim->data() == cpu.data() && sim->nbytes() == cpu.nbytes()) continue;
      sim->set_data_ptr_noswap(std::move(rehome(cpu, sim->device()).unsafeGetStorageImpl()->mutable_data_ptr()));
      sim->set_nbytes(cpu.nbytes());
    }
    for (auto& [impl, pair] : pairs_) {
      const auto& [cpu, sim] = pair;
      if (!up(cpu.storage()).is_alias_of(sim.storage()))
        sim.unsafeGetTensorImpl()->set_storage_keep_dtype(up(cpu.storage()));
      if (cpu.sizes() != sim.sizes() || cpu.strides() != sim.strides() || cpu.storage_offset() != sim.storage_offset())
        copy_shape(sim, cpu);
    }
  }
};

// Whether the host must wait for the device to know the shape, or the value, of the result.
bool waits(const std::string& name, c10::ArrayRef<IValue> args) {
  static const std::unordered_set<std::string> names{
      "aten::nonzero",    "aten::masked_select",      "aten::_unique",  "aten::_unique2", "aten::unique_dim",
      "aten::bincount",   "aten::unique_consecutive", "aten::equal",    "aten::unique_dim_consecutive"};
  if (names.count(name)) return true;
  if (name == "aten::repeat_interleave") return args.back().isNone();
  const bool put = name == "aten::_index_put_impl_";
  if (!put && name != "aten::index") return false;
  // x[mask] = 0 is a masked fill. (The zero comes as a device scalar, so x[mask] = device_scalar is let through too.)
  if (put && args[2].toTensor().numel() == 1 && !args[3].toBool()) return false;
  for (const auto& index : args[1].toListRef())
    if (index.isTensor()) {
      const auto dtype = index.toTensor().scalar_type();
      if (dtype == at::kBool || dtype == at::kByte) return true;
    }
  return false;
}

// Takes any operator: runs the CPU's kernel on the aliases.
void run(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  static const std::unordered_set<std::string> bookkeeping{"aten::resize_", "aten::set_", "aten::is_set_to"};
  const auto& schema = op.schema();
  const auto& parameters = schema.arguments();
  const auto first = stack->size() - parameters.size();
  bool computes = !bookkeeping.count(schema.name());
  Call call(schema.name());
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto& value = (*stack)[first + i];
    const auto* alias = parameters[i].alias_info();
    const bool written = alias && alias->isWrite();
    if (alias && !written) computes = false;  // a view
    if (value.isTensor()) {
      value = call.down(value.toTensor(), /*scalar_from_host=*/!written);
    } else if (value.isTensorList()) {
      c10::List<Tensor> list;
      for (const auto& t : value.toTensorVector()) list.push_back(call.down(t, false));
      value = std::move(list);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> list;
      for (const auto& t : value.toOptionalTensorVector())
        list.push_back(t ? std::optional<Tensor>(call.down(*t, false)) : std::nullopt);
      value = std::move(list);
    } else if (value.isStorage()) {
      value = call.down(value.toStorage());
    } else if (value.isDevice() && value.toDevice().type() == kSim) {
      call.claim(value.toDevice().has_index() ? value.toDevice() : sim(current_device));
      value = c10::Device(at::kCPU);
    }
  }
  if (call.device < 0) call.device = current_device;
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto& value = (*stack)[first + i];
    static const auto generator = c10::OptionalType::create(c10::GeneratorType::get());
    if (value.isNone() && *parameters[i].type() == *generator) value = default_generator(call.device);
    if (value.isGenerator()) {
      const auto given = value.toGenerator();
      TORCH_CHECK(given.device().type() == kSim, "Expected a 'sim' device type for generator but found ",
                  given.device());
      value = static_cast<SimGenerator*>(given.unsafeGetGeneratorImpl())->inner;
    }
  }
  const bool wait = waits(schema.name(), c10::ArrayRef<IValue>(*stack).slice(first));
  if (wait) host_waits(schema.name(), false);
  if (computes) {
    Section section;
    auto& clock = section.launch(call.device, call.touched);
    if (wait) section.synchronise(clock);
  }
  {
    at::AutoDispatchBelowADInplaceOrView plain;
    c10::impl::ExcludeDispatchKeyGuard uncast(c10::autocast_dispatch_keyset);
    const auto outer = std::exchange(computing, call.device);
    const std::shared_ptr<void> restore(nullptr, [outer](void*) { computing = outer; });
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  }
  call.settle();
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
    auto& value = (*stack)[i];
    if (value.isTensor()) {
      value = call.up(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<Tensor> list;
      for (const auto& t : value.toTensorVector()) list.push_back(call.up(t));
      value = std::move(list);
    }
  }
}

Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
             std::optional<at::Device> device, std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!pin.value_or(false), "Only dense CPU tensors can be pinned");
  const c10::DeviceGuard guard(device.value_or(c10::Device(kSim)));
  return at::detail::empty_generic(size, &sim_allocator, kSimKeys, at::dtype_or_default(dtype), format);
}

Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                     std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool> pin) {
  TORCH_CHECK(!pin.value_or(false), "Only dense CPU tensors can be pinned");
  const c10::DeviceGuard guard(device.value_or(c10::Device(kSim)));
  return at::detail::empty_strided_generic(size, stride, &sim_allocator, kSimKeys, at::dtype_or_default(dtype));
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  const Tensor source = as_cpu(from).expand(to.sizes()), target = as_cpu(to);
  const void *read = from.storage().data(), *written = to.storage().data();
  const int device = to.is_cpu() ? from.device().index() : to.device().index();
  at::AutoDispatchBelowADInplaceOrView plain;
  if (!from.is_cpu() && !to.is_cpu()) {
    Section section;
    if (from.device() != to.device())  // both devices' current streams take part, as with CUDA's peer copies
      merge(world.lanes[lane_here(device)].clock, section.launch(from.device().index(), {read}));
    section.launch(device, {read, written});
  } else if (non_blocking && is_pinned(to.is_cpu() ? to.data_ptr() : from.data_ptr()) &&
             source.strides() == target.strides() && target.is_non_overlapping_and_dense()) {
    // What the copy engine can move as it lies is late; all else goes through unpinned staging memory.
    Section().queue(device, target, source, to.is_cpu() ? read : written);
    return to;
  } else {
    host_waits(to.is_cpu() ? "copy from device to host" : "copy from host to device", false);
    Section section;
    section.synchronise(section.launch(device, {read, written}));
  }
  target.copy_(source);
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar read_scalar(const Tensor& t) {
  host_waits("aten::_local_scalar_dense", false);
  {
    Section section;
    section.synchronise(section.launch(t.device().index(), {t.storage().data()}));
  }
  at::AutoDispatchBelowADInplaceOrView plain;
  return as_cpu(t).item();
}

// As the CPU composes it, for the same bits: torch would call a fused kernel that takes no generator.
Tensor dropout(const Tensor& t, double p, bool train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 0 || !train || t.numel() == 0) return t;
  return p == 1 ? t.mul(at::zeros({}, t.options())) : t * at::empty_like(t).bernoulli_(1 - p).div_(1 - p);
}

void record_stream(Tensor& t, c10::Stream stream) { record_use(t.storage().data_ptr(), stream); }

// ---------------------------------------------------------------------------------------------------------------
// What torch asks of a device: streams and events (the guard), everything else (the hooks).

struct Event {
  Clock clock;
  bool timing;
  std::chrono::steady_clock::time_point time;
};

struct SimGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kSim; }
  c10::Device exchangeDevice(c10::Device to) const override {
    const auto before = getDevice();
    setDevice(to);
    return before;
  }
  c10::Device getDevice() const override { return sim(current_device); }
  void setDevice(c10::Device to) const override {
    if (!to.has_index()) return;
    TORCH_CHECK(to.index() < kDevices, "sim error: invalid device ordinal");
    current_device = to.index();
  }
  void uncheckedSetDevice(c10::Device to) const noexcept override { current_device = to.index(); }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }

  c10::Stream getStream(c10::Device d) const override {
    const int index = d.has_index() ? d.index() : current_device;
    return c10::Stream(c10::Stream::UNSAFE, sim(index), current_stream.at(index));
  }
  c10::Stream getDefaultStream(c10::Device d) const override {
    return c10::Stream(c10::Stream::DEFAULT, sim(d.has_index() ? d.index() : current_device));
  }
  c10::Stream getNewStream(c10::Device d, int) const override {
    Section section;
    return c10::Stream(c10::Stream::UNSAFE, sim(d.has_index() ? d.index() : current_device), ++world.streams);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool) const override { return getNewStream(d, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const auto before = getStream(stream.device());
    current_stream.at(stream.device_index()) = stream.id();
    return before;
  }
  bool queryStream(const c10::Stream& stream) const override {
    Section section;
    return section.completed(world.lanes[lane_of(stream)].clock);
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    host_waits("stream.synchronize", true);
    Section section;
    check(stream.device_index());
    section.synchronise(world.lanes[lane_of(stream)].clock);
  }
  void synchronizeDevice(c10::DeviceIndex index) const override {
    host_waits("device.synchronize", true);
    Section section;
    check(index);
    for (auto& [number, lane] : world.lanes)
      if (number % kDevices == index) section.synchronise(lane.clock);
  }
  void recordDataPtrOnStream(const DataPtr& memory, const c10::Stream& s) const override { record_use(memory, s); }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag flag) const override {
    Section section;
    check(stream.device_index());
    delete static_cast<Event*>(*event);
    *event = new Event{world.lanes[lane_of(stream)].clock, flag == c10::EventFlag::BACKEND_DEFAULT,
                       std::chrono::steady_clock::now()};
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (!event) return;
    Section section;
    check(stream.device_index());
    merge(world.lanes[lane_of(stream)].clock, static_cast<Event*>(event)->clock);
  }
  bool queryEvent(void* event) const override {
    Section section;
    return !event || section.completed(static_cast<Event*>(event)->clock);
  }
  void synchronizeEvent(void* event) const override {
    host_waits("event.synchronize", true);
    if (!event) return;
    Section section;
    for (auto [lane, number] : static_cast<Event*>(event)->clock) check(lane % kDevices);
    section.synchronise(static_cast<Event*>(event)->clock);
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  double elapsedTime(void* start, void* end, c10::DeviceIndex) const override {
    TORCH_CHECK(start && end, "Both events must be recorded before calculating elapsed time.");
    const auto &a = *static_cast<Event*>(start), &b = *static_cast<Event*>(end);
    TORCH_CHECK(a.timing && b.timing, "Both events must be created with argument 'enable_timing=True'.");
    TORCH_CHECK(queryEvent(start) && queryEvent(end), "Both events must be completed before calculating elapsed time.");
    return std::chrono::duration<double, std::milli>(b.time - a.time).count();
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, SimGuard)

struct SimHooks final : at::PrivateUse1HooksInterface {
  const SimGuard guard;
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return world.owner != 0; }
  void init() const override {
    Section section;
    if (!world.owner) world.owner = getpid();
    check(0);
  }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  void setCurrentDevice(c10::DeviceIndex index) const override { guard.setDevice(sim(index)); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current_device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return guard.exchangeDevice(sim(index)).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator; }
  c10::Device getDeviceFromPtr(void* data) const override {
    Section section;
    return sim(world.blocks.at(data).device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return make_generator(index); }
  void resizePrivateUse1Bytes(const Storage& storage, size_t bytes) const override {
    const c10::DeviceGuard on(storage.device());
    auto memory = sim_allocator.allocate(bytes);
    if (const auto kept = std::min(bytes, storage.nbytes())) std::memcpy(memory.get(), storage.data(), kept);
    storage.set_data_ptr_noswap(std::move(memory));
    storage.set_nbytes(bytes);
  }
};

const bool registered = [] {
  // A process may fork while another of its threads is in a section; its child shall find the mutex free.
  pthread_atfork([] { world.mutex.lock(); }, [] { world.mutex.unlock(); }, [] { world.mutex.unlock(); });
  c10::SetAllocator(kSim, &sim_allocator);
  c10::SetCPUAllocator(new HostAllocator);
  at::RegisterPrivateUse1HooksInterface(new SimHooks);
  return true;
}();

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  const std::set<std::string> own{"aten::empty.memory_format", "aten::empty_strided", "aten::_local_scalar_dense"};
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_local_scalar_dense", read_scalar);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("record_stream", record_stream);
  m.impl("dropout", dropout);
  // The fallback alone would not do: torch prefers its generic, composite kernels to a fallback. Where the CPU has a
  // kernel of its own, or CUDA has (convolution, lists of tensors), the whole operator is one launch here too.
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    const bool list = name.name.rfind("aten::_foreach_", 0) == 0 && name.name.rfind("aten::_foreach_copy", 0) != 0;
    const bool convolution = name.name == "aten::convolution" || name.name == "aten::convolution_backward";
    if (!op || name.name.rfind("aten::", 0) != 0 || own.count(c10::toString(name)) ||
        !(list || convolution || op->hasKernelForDispatchKey(c10::DispatchKey::CPU)))
      continue;
    m.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&run>());
  }
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { m.impl("dropout", dropout); }

// Autocast with CUDA's own lists of operators.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  using namespace at;  // as the lists want it
#define SIM_CAST(POLICY, ...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, POLICY)
#define SIM_LOWER(...) SIM_CAST(lower_precision_fp, __VA_ARGS__)
#define SIM_FLOAT(...) SIM_CAST(fp32, __VA_ARGS__)
#define SIM_FLOAT_DTYPE(...) SIM_CAST(fp32_set_opt_dtype, __VA_ARGS__)
#define SIM_PROMOTE(...) SIM_CAST(promote, __VA_ARGS__)
  AT_FORALL_LOWER_PRECISION_FP(SIM_LOWER)
  AT_FORALL_FP32(SIM_FLOAT)
  AT_FORALL_FP32_SET_OPT_DTYPE(SIM_FLOAT_DTYPE)
  AT_FORALL_PROMOTE(SIM_PROMOTE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
}

// What only tests ask, as operators of their own, so that no Python header has to be compiled.
TORCH_LIBRARY(sim, m) {
  m.def("init", [] { at::detail::getPrivateUse1Hooks().init(); });
  m.def("is_initialized", [] { return world.owner != 0; });
  m.def("is_in_bad_fork", [] { return world.owner != 0 && world.owner != getpid(); });
  m.def("on_sync", [](int64_t mode) { world.on_sync = static_cast<OnSync>(mode); });
  m.def("get_on_sync", [] { return static_cast<int64_t>(world.on_sync); });
  m.def("syncs", [] {
    Section section;
    c10::Dict<std::string, int64_t> counts;
    for (const auto& [name, count] : world.syncs) counts.insert(name, count);
    return counts;
  });
  m.def("launches", [] { return world.launches; });
  m.def("unrecorded", [] { return world.unrecorded; });
  m.def("pending", [] {
    Section section;
    int64_t count = 0;
    for (const auto& [number, lane] : world.lanes) count += static_cast<int64_t>(lane.queue.size());
    return count;
  });
  m.def("reset_counters", [] {
    Section section;
    world.syncs.clear();
    world.launches = world.unrecorded = 0;
  });
  m.def("limit_memory", [](int64_t bytes, int64_t device) {
    Section section;
    world.devices.at(device).limit = bytes;
  });
  m.def("lose", [](int64_t device) {
    Section section;
    world.devices.at(device).lost = true;
  });
  m.def("lose_after", [](int64_t launches, std::string once) {
    Section section;
    world.lose_after = launches, world.lose_once = std::move(once);
  });
}

}  // namespace
