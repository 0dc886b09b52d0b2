// SPDX-License-Identifier: Apache-2.0
// A shared object that is no module.
int plain_function(int value);
int plain_function(int value) { return value + 1; }
