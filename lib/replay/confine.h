// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/driver.h"

namespace kjudge {

// What a worker gives up, in two steps. A kernel of the host driver is code of the worker's
// process, already when its module is loaded; a GPU's is not, and there this is a second wall.
// Nothing is given up with KJUDGE_WORKER_FILTER=off in the environment, which is for finding out
// what a new driver needs, and in builds with a sanitizer, which needs more.

// Before the driver is opened, while the process has one thread. Of files the host driver's worker
// keeps those that libraries are made of, to read; NVIDIA's driver opens files as it goes and keeps
// all. Without Landlock in the kernel nothing changes.
void close_files(DriverKind driver);

// Before anything of a bundle is loaded. For the host driver: only the calls that driver and worker
// make; any other ends the process with SIGSYS. For NVIDIA's, whose calls are not written down
// anywhere: no new socket, process, program or user of the kernel's rarer parts; those fail.
void close_calls(DriverKind driver);

// When all is loaded: the host driver's worker opens no file any more.
void close_loading(DriverKind driver);

// Whether close_files() can do something here.
bool can_close_files();

}  // namespace kjudge
