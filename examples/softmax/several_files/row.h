// SPDX-License-Identifier: Apache-2.0
#pragma once

float row_maximum(const float *row, long n);
// out[i] = e^(row[i] - maximum); returns their sum.
float row_exponentials(float *out, const float *row, long n, float maximum);
