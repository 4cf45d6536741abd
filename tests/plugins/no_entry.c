/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shared object without the entry. Linked with entry_library it finds one
 * there, which doesn't make it a plugin.
 */
int cellgate_test_no_entry(void);
__attribute__((visibility("default"))) int cellgate_test_no_entry(void)
{
    return 0;
}
