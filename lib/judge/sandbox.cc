// SPDX-License-Identifier: Apache-2.0
//
// bubblewrap makes the namespaces and mounts; its arguments are the policy, and what it leaves open
// is closed here. In the order in which it happens:
//
//   in the child before bwrap   control groups; first to go when memory is short; as root a view of
//                               the folders to show, for the other user may not reach them, and
//                               then that user. bwrap --uid would only rename root: what it wrote
//                               and read would still be root's.
//   bwrap                       namespaces, mounts, no new privileges, the seccomp filter
//   prlimit                     limits; inside, so that the number of processes is counted there
//   the program
//
// Process 1 of the process namespace is bwrap's. With its parent, or when it is killed, it ends,
// and the kernel ends all others with it before it can be reaped; run_to_end() reaps it.
#include "judge/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "error.h"
#include "judge/cgroup.h"
#include "replay/confine.h"
#include "syscall_filter.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kFirstUid = 60001, kLastUid = 60064;
// Of builds with many compilers, and of torch's threads on many cores; far below what harms others.
constexpr std::uint64_t kProcesses = 4096;
constexpr std::uint64_t kOpenFiles = 16384;
constexpr const char* kHome = "/tmp/home";

// What a program finds of the system: all of it readable by everybody, none of it the judge's.
constexpr const char* kSystem[] = {"/usr",
                                   "/bin",
                                   "/sbin",
                                   "/lib",
                                   "/lib32",
                                   "/lib64",
                                   "/libx32",
                                   "/opt",
                                   "/sys",
                                   "/etc/alternatives",
                                   "/etc/ld.so.cache",
                                   "/etc/ld.so.conf",
                                   "/etc/ld.so.conf.d",
                                   "/etc/localtime",
                                   "/etc/nsswitch.conf"};

// Of a GPU, beside its own /dev/nvidiaN. In /proc its driver has no files of a process, so a new
// /proc has them too. Enough for torch, Triton and NVRTC on an H200; what another driver needs
// shows as a CUDA error of the capture, and belongs here.
constexpr const char* kGpuNodes[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"};

// All of the judge's environment that goes inside, when it is set.
constexpr const char* kEnvironment[] = {"PATH",
                                        "LANG",
                                        "LC_ALL",
                                        "LC_CTYPE",
                                        "TZ",
                                        "PYTHONPATH",
                                        "CUDA_HOME",
                                        "CUDA_PATH",
                                        "VIRTUAL_ENV",
                                        "CONDA_PREFIX",
                                        "CC",
                                        "CXX",
                                        "CUDACXX",
                                        "KJUDGE_NVCC",
                                        "KJUDGE_CUPTI",
                                        "LD_LIBRARY_PATH",
                                        "KJUDGE_HOST_DEVICES",
                                        "KJUDGE_HOST_MEMORY",
                                        "KJUDGE_HOST_LAUNCH_TIMEOUT_MS"};

[[noreturn]] void missing(const std::string& what, const std::string& advice) {
  throw Error(Fault::device, cat("no sandbox here: ", what, "; ", advice,
                                 "; or say --unsafe if you trust every submission"));
}

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return in_folder == folder.end();
}

fs::path find_program(const char* name, const char* package) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path program = fs::path(folder) / name;
    if (program.is_absolute() && ::access(program.c_str(), X_OK) == 0)
      return fs::canonical(program);
  }
  missing(cat(name, " was not found"), cat("install it (Debian: apt-get install ", package, ")"));
}

std::uint64_t physical_memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// What is left over is for the supervisor and the system.
std::uint64_t memory_limit() { return physical_memory() / 4 * 3; }
std::uint64_t temporary_limit() {
  return std::min<std::uint64_t>(physical_memory() / 4, std::uint64_t{8} << 30);
}

Fd in_memory(const char* name) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd.valid()) throw_errno("memory for the sandbox");
  return fd;
}

// A second description of the same file, at its beginning.
Fd reopened(const Fd& fd) {
  Fd again(::open(cat("/proc/self/fd/", fd.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!again.valid()) throw_errno("/proc/self/fd");
  return again;
}

void give(const fs::path& folder, uid_t uid) {
  const auto change = [&](const fs::path& path) {
    if (::lchown(path.c_str(), uid, uid) != 0) throw_errno(path.string());
  };
  change(folder);
  for (const auto& item : fs::recursive_directory_iterator(folder)) change(item.path());
}

// All that happens between fork and exec, made before it.
class WayIn {
 public:
  WayIn(const Cgroup& cgroup, uid_t uid) : uid_(uid) {
    for (const fs::path& file : cgroup.procs()) groups_.push_back(file.string());
  }

  // Where bwrap finds `path`.
  std::string source_of(const fs::path& path) {
    if (uid_ == 0) return path.string();
    KJ_CHECK(shown_.size() < kMostShown);
    const std::string shown = cat(kView, "/", shown_.size());
    shown_.push_back({path.string(), shown, fs::is_directory(path)});
    return shown;
  }

  // Only system calls: see ChildOptions::before_exec.
  int operator()() const {
    for (const std::string& group : groups_) {
      if (!put(group.c_str(), "0")) return errno;
    }
    put("/proc/self/oom_score_adj", "1000");
    if (uid_ == 0) return 0;
    if (const int error = make_view()) return error;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(uid_, uid_, uid_) != 0 ||
        ::setresuid(uid_, uid_, uid_) != 0) {
      return errno;
    }
    return 0;
  }

 private:
  static constexpr const char* kView = "/tmp";
  static constexpr std::size_t kMostShown = 128;
  struct Shown {
    std::string path, as;
    bool folder;
  };

  static bool put(const char* file, const char* value) {
    const int fd = ::open(file, O_WRONLY | O_CLOEXEC);
    const auto size = static_cast<ssize_t>(std::strlen(value));
    const bool done = fd >= 0 && ::write(fd, value, static_cast<std::size_t>(size)) == size;
    if (fd >= 0) ::close(fd);
    return done;
  }

  // "/proc/self/fd/N" without an allocation.
  static const char* path_of(int fd, std::array<char, 32>& text) {
    constexpr std::string_view kFolder = "/proc/self/fd/";
    std::array<char, 12> digits;
    std::size_t count = 0;
    do digits[count++] = static_cast<char>('0' + fd % 10);
    while ((fd /= 10) > 0);
    char* end = std::copy(kFolder.begin(), kFolder.end(), text.begin());
    end =
        std::reverse_copy(digits.begin(), digits.begin() + static_cast<std::ptrdiff_t>(count), end);
    *end = 0;
    return text.data();
  }

  // Opened before the tmpfs hides what lies below the same folder.
  int make_view() const {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return errno;
    }
    std::array<int, kMostShown> fds;
    for (std::size_t i = 0; i < shown_.size(); ++i) {
      if ((fds[i] = ::open(shown_[i].path.c_str(), O_PATH | O_CLOEXEC)) < 0) return errno;
    }
    if (::mount("tmpfs", kView, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0) return errno;
    for (std::size_t i = 0; i < shown_.size(); ++i) {
      const char* as = shown_[i].as.c_str();
      const int made = shown_[i].folder ? ::mkdir(as, 0755) : ::mknod(as, S_IFREG | 0644, 0);
      std::array<char, 32> source;
      if (made != 0 ||
          ::mount(path_of(fds[i], source), as, nullptr, MS_BIND | MS_REC, nullptr) != 0) {
        return errno;
      }
    }
    return 0;
  }

  uid_t uid_;
  std::vector<std::string> groups_;
  std::vector<Shown> shown_;
};

// Holds a user number for as long as the socket lives: see DeviceLock.
bool take_name(const Fd& socket, const std::string& lock_name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, lock_name.data(), lock_name.size());
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + lock_name.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return true;
  if (errno != EADDRINUSE) throw_errno("user of the sandbox");
  return false;
}

Fd make_filter() {
  SyscallFilter filter(SyscallFilter::Otherwise::allow);
  filter.refuse_kernel_surface();
  filter.refuse_other_families();
  return filter.program();
}

// The first line that is bwrap's own.
std::string words_of_bwrap(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("bwrap: ")) return line;
  }
  return output.empty() ? "no word of why" : output.substr(0, output.find('\n'));
}

}  // namespace

Sandbox::Sandbox(const Wanted& wanted) : filter_(make_filter()) {
  find_programs();
  if (wanted.driver.kind == DriverKind::host && !can_close_files()) {
    missing("the kernel has no Landlock, without which kernels of the host driver could read files",
            "use Linux 5.13 or newer, with landlock in lsm= on its command line");
  }
  for (const char* path : kSystem) {
    if (fs::exists(path)) readable_.push_back(path);
  }
  for (const char* name : kEnvironment) {
    if (const char* value = std::getenv(name)) environment_[name] = value;
  }
  environment_["HOME"] = kHome;
  environment_["TMPDIR"] = "/tmp";
  environment_["USER"] = environment_["LOGNAME"] = "contestant";
  find_python();
  find_libraries(wanted.driver);
  find_device(wanted.driver, wanted.device);
  for (const fs::path& path : wanted.hidden) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(path, error);
    if (!error && shown(real)) hidden_.push_back(real);
  }
  if (::geteuid() == 0) take_uid();
  try_out();
}

void Sandbox::find_programs() {
  bwrap_ = find_program("bwrap", "bubblewrap");
  prlimit_ = find_program("prlimit", "util-linux");
  ChildOptions child;
  child.program = bwrap_;
  child.arguments = {"--version"};
  version_ = run_to_end(child, std::chrono::seconds(10), 4096).output;
  version_ = version_.substr(0, version_.find('\n'));
}

bool Sandbox::shown(const fs::path& path) const {
  return std::any_of(readable_.begin(), readable_.end(),
                     [&](const fs::path& folder) { return is_below(path, folder); });
}

void Sandbox::show(const fs::path& path) {
  std::error_code error;
  if (!path.is_absolute() || path == "/" || !fs::exists(path, error)) return;
  needed_.push_back(path);
  if (!shown(path)) readable_.push_back(path);
}

// The judge's own Python, with what it finds: PATH may lead to a script that chooses one.
void Sandbox::find_python() {
  ChildOptions child;
  child.program = "/usr/bin/env";
  child.directory = "/";
  child.arguments = {"python3", "-B", "-c",
                     "import sys\n"
                     "sys.path[0] = sys.argv[1]\n"
                     "import _python, os, site\n"
                     "print(os.path.dirname(sys.executable), site.getuserbase(), sys.prefix,"
                     " sys.base_prefix, *sys.path[1:], sep='\\n')",
                     (library_directory() / "harness").string()};
  const auto finished = run_to_end(child, std::chrono::seconds(60), 1 << 16);
  if (!finished.status || !finished.status->ok()) {
    missing(cat("python3 could not be started: ", finished.output),
            "install it, or mend PATH (cron's is short)");
  }
  std::istringstream lines(finished.output);
  std::string programs, user_base;
  std::getline(lines, programs);
  std::getline(lines, user_base);
  environment_["PATH"] = cat(programs, ":", environment_["PATH"]);
  environment_["PYTHONUSERBASE"] = user_base;
  for (std::string path; std::getline(lines, path);) show(path);
}

void Sandbox::find_libraries(const Driver& driver) {
  const fs::path library = library_directory();
  show(library);
  show(library.parent_path().parent_path() / "include");
  show(driver.library.parent_path());
  for (const char* name : {"CUDA_HOME", "CUDA_PATH", "KJUDGE_NVCC", "KJUDGE_CUPTI"}) {
    if (const char* value = std::getenv(name)) show(value);
  }
  if (const char* value = std::getenv("LD_LIBRARY_PATH")) {
    std::istringstream folders(value);
    for (std::string folder; std::getline(folders, folder, ':');) show(folder);
  }
}

// Of several GPUs the driver sees only the one whose node is there, and numbers it 0.
void Sandbox::find_device(const Driver& driver, int device) {
  inner_device_ = device;
  if (driver.kind == DriverKind::host) return;
  CUdevice handle = 0;
  KJ_DRIVER(driver, cuDeviceGet(&handle, device));
  const auto attribute = [&](CUdevice_attribute id) {
    int value = 0;
    KJ_DRIVER(driver, cuDeviceGetAttribute(&value, id, handle));
    return value;
  };
  std::array<char, 32> bus{};
  std::snprintf(
      bus.data(), bus.size(), "%04x:%02x:%02x.0", attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
      attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID), attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
  const fs::path information = fs::path("/proc/driver/nvidia/gpus") / bus.data() / "information";
  constexpr std::string_view kMinor = "Device Minor:";
  const std::string text = read_file(information, 1 << 16);
  const auto at = text.find(kMinor);
  if (at == std::string::npos) {
    missing(cat(information.string(), " does not name the GPU's device node"),
            "report this with the version of the driver");
  }
  const int minor = std::atoi(text.c_str() + at + kMinor.size());
  devices_.push_back(cat("/dev/nvidia", minor));
  for (const char* node : kGpuNodes) {
    if (fs::exists(node)) devices_.push_back(node);
  }
  environment_["CUDA_VISIBLE_DEVICES"] = gpu_uuid(driver, device);
  inner_device_ = 0;
}

void Sandbox::take_uid() {
  uid_lock_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!uid_lock_.valid()) throw_errno("user of the sandbox");
  for (uid_ = kFirstUid; uid_ <= kLastUid; ++uid_) {
    if (take_name(uid_lock_, cat("kjudge-uid-", uid_))) return;
  }
  missing(cat("all users from ", kFirstUid, " to ", kLastUid, " are in use by other judges"),
          "wait for one to end");
}

void Sandbox::try_out() const {
  ChildOptions child;
  child.program = "/usr/bin/env";
  child.arguments = {"true"};
  child.directory = "/tmp";
  Finished finished;
  try {
    finished = run(child, {}, std::chrono::seconds(30), 1 << 16);
  } catch (const Error& error) {
    if (error.fault() != Fault::host) throw;
    missing(error.what(),
            "bubblewrap 0.7 or newer and user namespaces are needed (sysctl "
            "kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000, AppArmor must not "
            "forbid them; a container needs the right to make them and to mount /proc)");
  }
  if (!finished.status || !finished.status->ok()) {
    missing(cat("a trial of it failed: ",
                finished.status ? kjudge::describe(*finished.status)
                                : std::string("no end within 30 s"),
                ": ", finished.output),
            "run 'kjudge doctor'");
  }
}

Finished Sandbox::run(const ChildOptions& options, const SandboxFiles& files,
                      std::chrono::duration<double> limit, std::size_t output_limit,
                      const std::function<bool()>& tick) const {
  KJ_CHECK(options.descriptors.empty() && !options.before_exec);
  const Cgroup cgroup({memory_limit(), kProcesses});
  WayIn way(cgroup, uid_);
  const std::string temporary = std::to_string(temporary_limit());

  std::vector<std::string> arguments = {"--unshare-user",
                                        "--unshare-ipc",
                                        "--unshare-pid",
                                        "--unshare-net",
                                        "--unshare-uts",
                                        "--hostname",
                                        "sandbox",
                                        "--unshare-cgroup-try",
                                        "--new-session",
                                        "--seccomp",
                                        "3",
                                        "--die-with-parent",
                                        "--json-status-fd",
                                        "4",
                                        "--size",
                                        temporary,
                                        "--tmpfs",
                                        "/tmp",
                                        "--dir",
                                        kHome,
                                        "--proc",
                                        "/proc",
                                        "--dev",
                                        "/dev",
                                        "--size",
                                        temporary,
                                        "--tmpfs",
                                        "/dev/shm"};
  const auto add = [&](std::initializer_list<std::string> more) {
    arguments.insert(arguments.end(), more);
  };
  for (const fs::path& device : devices_) add({"--dev-bind", device.string(), device.string()});
  for (const fs::path& path : readable_) add({"--ro-bind", way.source_of(path), path.string()});
  for (const fs::path& path : hidden_) {
    if (!fs::is_directory(path)) continue;  // not made yet
    add({"--size", "4096", "--tmpfs", path.string()});
    for (const fs::path& needed : needed_) {
      if (needed == path || !is_below(needed, path)) continue;
      add({"--ro-bind", way.source_of(needed), needed.string()});
    }
    add({"--remount-ro", path.string()});
  }
  for (const fs::path& path : files.readable) {
    add({"--ro-bind", way.source_of(path), path.string()});
  }
  for (const fs::path& path : files.writable) {
    if (uid_ != 0) give(path, uid_);
    add({"--bind", way.source_of(path), path.string()});
  }
  add({"--remount-ro", "/dev", "--remount-ro", "/"});
  // Not for bwrap itself: a library to be preloaded is for the program.
  for (const auto& [name, value] : options.environment) {
    if (!value.empty() && !environment_.contains(name)) add({"--setenv", name, value});
  }
  add({"--chdir", options.directory.empty() ? "/tmp" : options.directory.string(), "--"});

  rlimit open_files{};
  ::getrlimit(RLIMIT_NOFILE, &open_files);
  const auto most = std::min<std::uint64_t>(open_files.rlim_max, kOpenFiles);
  add({prlimit_.string(), cat("--nproc=", kProcesses), "--core=0", cat("--nofile=", most),
       // Not the address space, of which drivers reserve terabytes. A control group counts better.
       cat("--data=", memory_limit())});
  if (files.file_bytes != 0) add({cat("--fsize=", files.file_bytes)});
  add({"--", options.program.string()});
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());

  ChildOptions outer;
  outer.program = bwrap_;
  outer.arguments = std::move(arguments);
  outer.directory = "/";
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    outer.environment[std::string(text.substr(0, text.find('=')))] = "";
  }
  // Process 1 inside, which is bwrap, shows what it started with.
  for (const auto& [name, value] : environment_) outer.environment[name] = value;
  const Fd filter = reopened(filter_);
  const Fd report = in_memory("kjudge-sandbox");
  outer.descriptors = {{filter.get(), 3}, {report.get(), 4}};
  outer.before_exec = way;

  Finished finished = run_to_end(outer, limit, output_limit, tick);
  if (const auto kills = cgroup.memory_kills()) finished.out_of_memory = *kills > 0;
  if (!finished.status || finished.status->signal != 0) return finished;
  // bwrap tells the exit code of a program that it has started, and of no other.
  std::string told(4096, '\0');
  const ssize_t size = ::pread(report.get(), told.data(), told.size(), 0);
  told.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  if (told.find("\"exit-code\"") == std::string::npos) {
    throw Error(Fault::host, words_of_bwrap(finished.output));
  }
  // A shell's way to tell of a signal, and bwrap's.
  const int signal = finished.status->code - 128;
  if (signal > 0 && signal <= 64) finished.status = ExitStatus{0, signal};
  return finished;
}

std::string Sandbox::describe() const {
  const std::string groups = Cgroup({memory_limit(), kProcesses}).describe();
  return cat(version_, ", uid ", uid_ != 0 ? uid_ : ::geteuid(), ", ",
             groups.empty() ? "no cgroup" : groups);
}

}  // namespace kjudge
