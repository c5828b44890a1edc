"""What every test process needs before anything else is imported."""

import os
import signal

# Two test processes share two cores: threads of BLAS on top of that would only spin.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# A job in the background of a shell starts with Ctrl-C ignored, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
