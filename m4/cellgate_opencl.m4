# SPDX-License-Identifier: Apache-2.0
# CELLGATE_OPENCL: the plugin for OpenCL devices needs the headers to build, and
# the ICD loader, which it opens when it runs.
AC_DEFUN([CELLGATE_OPENCL], [
  CELLGATE_WITH([opencl], [build the OpenCL plugin], [
    cellgate_saved_LIBS=$LIBS
    AC_CHECK_HEADER([CL/cl.h], [
      AC_CHECK_LIB([OpenCL], [clEnqueueFillBuffer],
        [cellgate_have_opencl=yes],
        [cellgate_why_opencl="CL/cl.h is there, but no libOpenCL of version 1.2 (on Debian: apt-get install ocl-icd-opencl-dev)"])],
      [cellgate_why_opencl="CL/cl.h was not found (on Debian: apt-get install opencl-headers ocl-icd-opencl-dev)"],
      [#define CL_TARGET_OPENCL_VERSION 120])
    LIBS=$cellgate_saved_LIBS
  ])
])
