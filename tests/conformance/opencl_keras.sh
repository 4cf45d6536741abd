#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every model that Keras wrote into the fixtures computes on PoCL what it computed
# in Keras.
. "${srcdir:-.}/tests/conformance/opencl_device.sh"
only /etc/OpenCL/vendors/pocl.icd PoCL
[ -x tests/unit/test_keras_fixtures ] || {
  echo "built without cmocka"
  exit 77
}
ini=conform-keras.ini
printf '[cellgate]\nplugin_path = %s\n[device pocl]\nplugin = opencl\ncache = %s\n' \
  "$PWD/plugins/opencl/.libs" "$PWD/tests/cache/opencl" >$ini
tests/unit/test_keras_fixtures $ini pocl
status=$?
rm -f $ini
exit $status
