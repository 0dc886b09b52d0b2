# SPDX-License-Identifier: Apache-2.0
"""The capture process: python3 capture.py REQUEST.json, started by kjudge with the recorder preloaded.

Imports the submission, runs prepare once, and for every shape runs kernel_fn twice and then once
more while the stream is captured; then the recorder writes the bundle. How far it is, the size of the
request's steps file tells kjudge, which holds each step to its limit; what happened is written to
the request's status file (kjudge-capture-status/1). Before the submission's code starts, which the
output says with STARTS, a failure is a traceback and exit status 1 without a status file; from then
on the submission may be the cause of any.
"""

import _python  # noqa: F401

import glob
import importlib.util
import json
import os
import sys
import traceback
from time import perf_counter as now  # ours, whatever a submission makes of the module

import _build
import _torch_rng
import cuda_submission
import driver
from _arguments import Arguments, Context, ContractError, match_returned
from _recorder import Recorder, RecorderError

HERE = os.path.dirname(os.path.abspath(__file__))

# CUresults of a kernel that went wrong, and of calls that a capture does not allow.
FAULTS = frozenset((700, 702, 710, 714, 715, 716, 717, 718, 719))
OUT_OF_MEMORY = 2

STARTS = b"kjudge: the submission's code starts here\n"  # as lib/judge/capture_protocol.h has it


class Stopped(Exception):
    """The submission is done for: what to tell."""

    def __init__(self, verdict, message, rule="", trace=""):
        super().__init__(message)
        self.verdict, self.message, self.rule, self.trace = verdict, message, rule, trace


def is_contestants(frame):
    name = frame.filename
    return not (name.startswith("<frozen ") or os.path.dirname(os.path.abspath(name)) == HERE)


def short_traceback(error):
    """The traceback with only the contestant's frames, and the place of the last of them."""
    told = traceback.TracebackException(type(error), error, error.__traceback__)
    seen = set()
    link = told
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        link.stack = traceback.StackSummary.from_list(
            [frame for frame in link.stack if is_contestants(frame)])
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    place = ""
    if told.stack:
        last = told.stack[-1]
        place = " (%s, line %d, in %s)" % (os.path.basename(last.filename), last.lineno, last.name)
    return "".join(told.format()).rstrip(), place


def words_of(error):
    try:
        return str(error) or type(error).__name__
    except Exception:  # its __str__ is the contestant's
        return type(error).__name__


def suspects():
    """The kernels of this step. Only those of driver.Kernel are known by name."""
    names = list(driver._launched)
    if not names:
        return "a kernel"
    if len(names) == 1:
        return "kernel %s" % names[0]
    return "one of the kernels %s%s" % (", ".join(names[:8]), ", ..." if names[8:] else "")


def blame(error, step, recorder):
    """What an exception that left the contestant's code says about it."""
    trace, place = short_traceback(error)
    words = words_of(error)
    if isinstance(error, driver.BuildError):
        return Stopped("build_error", "%s: %s" % (step, words), trace=trace)
    result = getattr(error, "result", None) if isinstance(error, driver.DriverError) else None
    met = recorder.call_failure()
    if met is not None and met.verdict == "refused":
        return Stopped("refused", "%s: %s" % (step, met.message), met.rule, trace)
    if result is not None and met is not None and met.message not in words and (
            error.name in met.message or error.call.split("_")[0] in met.message):
        words += " (%s)" % met.message  # why the recorder failed it, or a call of its own on the way
    out_of_memory = result == OUT_OF_MEMORY or "OutOfMemory" in type(error).__name__
    if out_of_memory and met is not None and met.verdict == "out_of_memory":
        return Stopped("out_of_memory", "%s: %s" % (step, met.message), trace=trace)
    if out_of_memory or isinstance(error, MemoryError):
        return Stopped("out_of_memory", "%s: %s%s" % (step, words, place), trace=trace)
    if result in FAULTS:
        return Stopped("gpu_fault", "%s: %s failed: %s%s" % (step, suspects(), words, place), trace=trace)
    if isinstance(error, ContractError):
        return Stopped("runtime_error", "%s: %s" % (step, words))
    if isinstance(error, SystemExit):
        return Stopped("runtime_error", "%s ends the process (sys.exit)%s; return instead" %
                       (step, place), trace=trace)
    return Stopped("runtime_error", "%s raised %s: %s%s" % (step, type(error).__name__, words, place),
                   trace=trace)


def name_cupti():
    """Tells the recorder, before the driver starts, of the CUPTI that torch brings: torch will load
    it too, and two versions in one process break its profiler."""
    if driver.is_host() or "KJUDGE_CUPTI" in os.environ:
        return
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(glob.glob(os.path.join(folder, "*", "lib", "libcupti.so.13"))):
            os.environ["KJUDGE_CUPTI"] = path


class Capture:
    def __init__(self, request):
        self.request = request
        self.shapes = request["shapes"]
        self.seconds = {}
        self.recorder = Recorder(os.environ["KJUDGE_RECORDER"])
        self.owner = os.getpid()
        # Arguments, returned tensors, state: memory that graphs use must not be freed.
        self.alive = []
        self.kernel_fn = None
        self.state = None
        self.started = False

    def contestant(self, step, function, *arguments):
        """Calls the contestant's code; Stopped if it raises. A child that it forked, and that comes
        back here, ends: there is one capture process."""
        self.start()
        driver._launched.clear()
        self.recorder.call_failure()  # of the step before
        try:
            return function(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.leave_if_forked()
            raise self.own_capture(error, step) or blame(error, step, self.recorder) from error
        finally:
            self.leave_if_forked()

    def start(self):
        if not self.started:
            self.started = True
            os.write(2, STARTS)
            self.begin_step(1)

    def own_capture(self, error, step):
        """A capture that the submission began and did not end makes other calls fail."""
        if isinstance(error, RuntimeError):
            try:
                self.recorder.check_no_capture(step)
            except RecorderError as refused:
                return Stopped(refused.verdict, refused.message, refused.rule, short_traceback(error)[0])

    def leave_if_forked(self):
        if os.getpid() != self.owner:
            os._exit(0)

    def timed(self, step, function):
        """Runs one step and keeps its seconds."""
        start = now()
        try:
            return function()
        finally:
            self.seconds[step] = max(0.0, now() - start)

    def begin_step(self, number):
        """Tells kjudge, which holds each step to its limit: 1 import, 2 prepare, then each shape, and
        the export."""
        with open(self.request["steps"], "wb") as file:
            file.truncate(number)

    def run(self):
        limits = self.request["limits"]
        name_cupti()
        self.recorder.begin(self.request["device"], self.request["seed"], limits["memory_bytes"],
                            limits["bundle_bytes"])
        context = Context(self.request)
        submission = self.timed("import", self.load)
        self.kernel_fn = getattr(submission, "kernel_fn", None)
        if not callable(self.kernel_fn):
            raise Stopped("runtime_error", "%s defines no kernel_fn(state, inputs, outputs)" %
                          os.path.basename(self.request["submission"]))
        prepare = getattr(submission, "prepare", None)
        if prepare is not None:
            self.begin_step(2)
            self.state = self.timed("prepare", lambda: self.prepare(prepare, context))
        if self.request["eager"]:
            return self.timed("capture", lambda: self.run_eagerly(self.shapes[0]))
        self.timed("capture", self.capture_all)
        self.begin_step(3 + len(self.shapes))
        self.timed("export", self.export)

    def load(self):
        path = self.request["submission"]
        if path.endswith(".cu"):
            return self.load_cuda(path)
        sys.path.insert(0, os.path.dirname(path))
        module = type(sys)("submission")
        module.__file__ = path
        sys.modules["submission"] = module

        def execute():
            with open(path, "rb") as file:
                source = file.read()
            exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)

        self.contestant(os.path.basename(path), execute)
        return module

    def load_cuda(self, path):
        if driver.is_host():
            self.start()
            raise Stopped("build_error", "submission.cu is CUDA C++ and needs a GPU; for the host "
                          "driver hand in a submission.py that builds C or C++ with driver.build()")
        nvcc = cuda_submission.find_nvcc()
        arch = cuda_submission.device_arch()

        def build():
            flags = self.request["challenge"].get("compiler_flags", [])
            made = cuda_submission.compile_shared(nvcc, path, arch, flags)
            return cuda_submission.CudaSubmission(made)

        return self.contestant("submission.cu", build)

    def prepare(self, prepare, context):
        def call():
            state = prepare(context)
            driver.synchronize()
            return state

        return self.contestant("prepare", call)

    def make_arguments(self, shape):
        recorder = self.recorder
        recorder.open_shape(shape["name"])
        tensors = {}
        for spec in shape["inputs"]:
            role = "inout" if spec["inout"] else "input"
            address = recorder.tensor(role, spec["name"], spec["dtype"], spec["dims"])
            tensors[spec["name"]] = driver.Array(address, spec["dims"], spec["dtype"])
        for spec in shape["outputs"]:
            address = recorder.tensor("output", spec["name"], spec["dtype"], spec["dims"])
            tensors[spec["name"]] = driver.Array(address, spec["dims"], spec["dtype"])
        if shape.get("made_up"):  # inputs.py has a part in them: they were made before
            for spec in shape["inputs"]:
                recorder.load(spec["name"], os.path.join(shape["made_up"], spec["name"]))
        else:  # what another input is read for is there before it
            for spec in sorted(shape["inputs"], key=lambda spec: spec["generator"]["source"] != ""):
                recorder.fill(spec["name"], spec["generator"])
        wrap = torch_tensor if uses_torch() else lambda array: array
        inputs = Arguments(shape["name"], [(s["name"], wrap(tensors[s["name"]]))
                                           for s in shape["inputs"]],
                           dict(shape["dims"], **shape["scalars"]))
        outputs = Arguments(shape["name"], [(s["name"], wrap(tensors[s["name"]]))
                                            for s in shape["outputs"]], {})
        self.alive.append((inputs, outputs))
        return inputs, outputs

    def call_kernel(self, shape, stream, inputs, outputs, waits):
        def call():
            with stream, torch_stream(stream):
                returned = self.kernel_fn(self.state, inputs, outputs)
            if waits:
                driver.synchronize()
            return match_returned(returned, shape["outputs"])

        return self.contestant("kernel_fn of shape %s" % shape["name"], call)

    def run_eagerly(self, shape):
        inputs, outputs = self.make_arguments(shape)
        self.call_kernel(shape, driver.Stream(), inputs, outputs, waits=True)

    def capture_all(self):
        for number, shape in enumerate(self.shapes, 3):
            self.begin_step(number)
            self.capture(shape)

    def capture(self, shape):
        inputs, outputs = self.make_arguments(shape)
        stream = driver.Stream()
        self.alive.append(stream)
        for _ in range(2):  # compiles, tunes and allocates whatever it does lazily
            generators = torch_generators()
            self.call_kernel(shape, stream, inputs, outputs, waits=True)
        if torch_generators() != generators:
            self.recorder.refuse("torch_rng", "kernel_fn of shape %s draws random numbers with torch" %
                                 shape["name"])
        self.recorder.begin_capture(stream.handle)
        try:
            returned = self.call_kernel(shape, stream, inputs, outputs, waits=False)
        except Stopped as stopped:
            raise self.blame_in_capture(stopped, stream, shape) from stopped
        self.alive.append(returned)
        self.recorder.end_capture(stream.handle)
        for name, tensor in returned:
            self.recorder.returned(name, driver.address_of(tensor))

    def blame_in_capture(self, stopped, stream, shape):
        """A call that a capture forbids raises in the contestant's code; the recorder knows why."""
        if stopped.verdict != "refused" and isinstance(stopped.__cause__, (driver.DriverError, RuntimeError)):
            try:
                if _torch_rng.is_rng_error(stopped.__cause__):
                    self.recorder.abandon_capture(stream.handle)
                    self.recorder.refuse("torch_rng", "kernel_fn of shape %s uses a random generator of "
                                         "torch's: %s" % (shape["name"], words_of(stopped.__cause__)))
                self.recorder.end_capture(stream.handle)
            except RecorderError as error:
                if error.verdict == "refused":
                    return Stopped("refused", error.message, error.rule, stopped.trace)
            return stopped
        self.recorder.abandon_capture(stream.handle)
        return stopped

    def export(self):
        clear_free_memory()
        self.recorder.write(self.request["bundle"], self.seconds)
        left_out, allocations = self.recorder.left_out()
        if allocations:
            print("kjudge: the recording leaves out %d allocation%s, %.1f MiB, to which no argument "
                  "of a kernel leads" % (allocations, "s" * (allocations > 1), left_out / 2**20),
                  file=sys.stderr)


def uses_torch():
    """On a GPU a submission that has imported torch gets torch's tensors."""
    return not driver.is_host() and "torch" in sys.modules


def torch_generators():
    return _torch_rng.states(sys.modules["torch"]) if uses_torch() else None


def torch_tensor(array):
    return sys.modules["torch"].from_dlpack(array)


def clear_free_memory():
    """Torch keeps what was freed. Cleared, it takes no place in the bundle: what no tensor holds is
    written before it is read."""
    if not uses_torch():
        return
    for segment in sys.modules["torch"].cuda.memory_snapshot():
        for block in segment["blocks"]:
            if block["state"] == "inactive":
                driver.fill_bytes(driver.Array(block["address"], (block["size"],), "uint8"), 0)
    driver.synchronize()


class NoStream:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def torch_stream(stream):
    if not uses_torch():
        return NoStream()
    torch = sys.modules["torch"]
    return torch.cuda.stream(torch.cuda.ExternalStream(stream.handle))


def printable(text, limit):
    """Text as status files hold it: UTF-8 without control characters but line ends and tabs, its
    middle left out where it is long."""
    if len(text) > limit:
        text = text[:limit // 2] + "\n[...]\n" + text[-limit // 2:]
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text)


def write_status(path, verdict, rule, message, trace, seconds):
    status = {"format": "kjudge-capture-status/1", "verdict": verdict, "rule": rule,
              "message": printable(message, 8192), "traceback": printable(trace, 65536),
              "seconds": seconds}
    temporary = path + ".tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(status, file)
    os.replace(temporary, path)


def main(request_path):
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    if request["format"] != "kjudge-capture/1":
        raise ValueError("%s: format %r, expected kjudge-capture/1" % (request_path, request["format"]))
    os.environ["KJUDGE_DEVICE"] = str(request["device"])
    capture = Capture(request)
    verdict, rule, message, trace = "accepted", "", "", ""
    try:
        capture.run()
    except Stopped as stopped:
        verdict, rule, message, trace = stopped.verdict, stopped.rule, stopped.message, stopped.trace
    except RecorderError as error:
        if not capture.started:
            raise
        verdict, rule, message = error.verdict, error.rule, error.message
    except Exception as error:
        if not capture.started:
            raise
        verdict, trace = "runtime_error", traceback.format_exc()
        message = ("the capture failed after the submission's code had run, with %s: %s; leave Python's own "
                   "modules and kjudge's as they are" % (type(error).__name__, words_of(error)))
    write_status(request["status"], verdict, rule, message, trace, capture.seconds)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    code = 0
    try:
        main(sys.argv[1])
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    _build.remove_folder()
    # Not sys.exit: threads and exit handlers of the contestant's do not outlive the capture.
    os._exit(code)
