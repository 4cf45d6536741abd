# SPDX-License-Identifier: Apache-2.0
# CELLGATE_CLBLAST: products of the OpenCL plugin, which needs the header to build
# and opens the library when it runs; and the OpenCL peer in bench/, which links
# with it.
AC_DEFUN([CELLGATE_CLBLAST], [
  CELLGATE_WITH([clblast], [let the OpenCL plugin multiply by CLBlast too, and compare with it in bench/], [
    cellgate_saved_LIBS=$LIBS
    AC_CHECK_HEADER([clblast_c.h], [
      AC_CHECK_LIB([clblast], [CLBlastSgemm],
        [cellgate_have_clblast=yes
         AC_SUBST([CLBLAST_LIBS], ["-lclblast -lOpenCL"])],
        [cellgate_why_clblast="clblast_c.h is there, but libclblast does not link"],
        [-lOpenCL])],
      [cellgate_why_clblast="CLBlast was not found (on Debian: apt-get install libclblast-dev)"],
      [#define CL_TARGET_OPENCL_VERSION 120])
    LIBS=$cellgate_saved_LIBS
  ])
])
