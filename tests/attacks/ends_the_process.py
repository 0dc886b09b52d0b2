# SPDX-License-Identifier: Apache-2.0
"""Ends the capture process as if all were well.

verdict: runtime_error
"""

import os

os._exit(0)

