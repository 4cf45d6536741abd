# SPDX-License-Identifier: Apache-2.0
# CELLGATE_ONEDNN: the peer in bench/. Nothing that is installed uses it.
AC_DEFUN([CELLGATE_ONEDNN], [
  CELLGATE_WITH([onednn], [build the comparison with oneDNN in bench/], [
    cellgate_saved_LIBS=$LIBS
    AC_CHECK_HEADER([oneapi/dnnl/dnnl.h], [
      AC_CHECK_LIB([dnnl], [dnnl_version],
        [cellgate_have_onednn=yes
         AC_SUBST([ONEDNN_LIBS], [-ldnnl])],
        [cellgate_why_onednn="oneapi/dnnl/dnnl.h is there, but libdnnl does not link"])],
      [cellgate_why_onednn="oneDNN was not found (on Debian: apt-get install libdnnl-dev)"])
    LIBS=$cellgate_saved_LIBS
  ])
])
