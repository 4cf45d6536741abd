#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance suite on the guide's example, as built with the tree.
exec ./cellgate-conform --quick tests/plugins/outside/.libs/minimal.so
