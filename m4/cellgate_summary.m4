# SPDX-License-Identifier: Apache-2.0

# CELLGATE_SUMMARY_LINE(what, name)
AC_DEFUN([CELLGATE_SUMMARY_LINE], [
  AS_IF([test "x$cellgate_have_$2" = xyes],
    [echo "  $1 yes"], [echo "  $1 no: $cellgate_why_$2"])
])

# CELLGATE_SUMMARY: what will be built, and why the rest will not.
AC_DEFUN([CELLGATE_SUMMARY], [
  echo
  echo "cellgate $PACKAGE_VERSION"
  echo "  library and command    yes"
  CELLGATE_SUMMARY_LINE([OpenMP plugin         ], [openmp])
  echo "    kernel levels         scalar$cellgate_levels"
  CELLGATE_SUMMARY_LINE([OpenCL plugin         ], [opencl])
  CELLGATE_SUMMARY_LINE([CUDA plugin           ], [cuda])
  AS_IF([test "x$cellgate_have_cuda" = xyes],
    [echo "    architectures         $with_cuda_arch, and PTX of the last"])
  CELLGATE_SUMMARY_LINE([unit tests (cmocka)   ], [cmocka])
  CELLGATE_SUMMARY_LINE([bench against oneDNN  ], [onednn])
  CELLGATE_SUMMARY_LINE([OpenCL with CLBlast   ], [clblast])
  echo
])
