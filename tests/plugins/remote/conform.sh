#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite on both cards of the stand-in, in every variant.
exec ./cellgate-conform --quick tests/plugins/remote/.libs/remote.so
