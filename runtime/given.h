/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs that an application gives, of any age (GROWTH in cellgate.h). What an
 * application must give of a struct is the first version of it: members that
 * came later are zero for one that was built before them. So the least size of
 * a struct stays what it was when the struct first appeared, and sizeof is
 * never asked for it.
 */
#ifndef CELLGATE_RUNTIME_GIVEN_H
#define CELLGATE_RUNTIME_GIVEN_H

#include <stdbool.h>
#include <stddef.h>

#include "cellgate/cellgate.h"
#include "cellgate/plugin.h"

#define CG_SIZE_THROUGH(type, member)                                          \
    (offsetof(type, member) + sizeof(((type *)NULL)->member))

/* The first versions, by their last members. Nothing of these lines changes
   when a struct grows. */
#define CG_FIRST_TENSOR CG_SIZE_THROUGH(cellgate_tensor, data)
#define CG_FIRST_INPUT CG_SIZE_THROUGH(cellgate_input, mask)
#define CG_FIRST_REQUEST CG_SIZE_THROUGH(cellgate_request, stream)
#define CG_FIRST_QUESTION CG_SIZE_THROUGH(cellgate_question, fill)
/* Structs all of whose members may be left out, and those that are filled. */
#define CG_FIRST_ANY sizeof(size_t)

/*
 * Whether a struct can be read: of `first` bytes or more, and with nothing but
 * zeros beyond the `known` ones. Read it with cellgate_struct_copy() then.
 */
static inline bool cg_given_known(const void *given, size_t first, size_t known)
{
    size_t size;

    memcpy(&size, given, sizeof size);
    return size >= first && cellgate_struct_known(given, known);
}

/* Whether a struct can be filled, with cellgate_struct_copy(). */
static inline bool cg_given_fillable(const void *given)
{
    size_t size = 0;

    if (given != NULL)
        memcpy(&size, given, sizeof size);
    return size >= CG_FIRST_ANY;
}

#endif
