/* SPDX-License-Identifier: Apache-2.0 */
/* The superblock, versions 0 to 3: where the root group is, and how wide
   addresses are. */
#include "config.h"

#include "runtime/formats/h5_file.h"

static const char signature[] = "\211HDF\r\n\032\n";

static cellgate_status not_hdf5(cg_h5 *h5, const char *why)
{
    return cellgate_fail(h5->error, CELLGATE_BAD_FILE,
                         "%s is not a valid HDF5 file: %s", h5->name, why);
}

static cellgate_status cut_short(cg_h5 *h5)
{
    return not_hdf5(h5, "it is cut short");
}

/* Whatever precedes the superblock (a user block) has 512, 1024 ... bytes. */
static cellgate_status skip_user_block(cg_h5 *h5)
{
    const size_t length = sizeof signature - 1;

    for (size_t at = 0; at < h5->size && h5->size - at >= length;
         at = at != 0 ? 2 * at : 512) {
        if (memcmp(h5->image + at, signature, length) == 0) {
            h5->image += at;
            h5->size -= at;
            return CELLGATE_OK;
        }
        if (at > SIZE_MAX / 2)
            break;
    }
    return not_hdf5(h5, "its signature is missing");
}

static bool is_width(uint8_t width)
{
    return width == 2 || width == 4 || width == 8;
}

static cellgate_status read_widths(cg_h5 *h5, cg_h5_cursor *cursor)
{
    cursor->offset_size = h5->offset_size = cg_h5_u8(cursor);
    cursor->length_size = h5->length_size = cg_h5_u8(cursor);
    if (cursor->bad)
        return cut_short(h5);
    if (!is_width(h5->offset_size) || !is_width(h5->length_size))
        return cellgate_fail(h5->error, CELLGATE_UNSUPPORTED,
                             "%s has addresses of %d and lengths of %d bytes; "
                             "2, 4 and 8 are read",
                             h5->name, h5->offset_size, h5->length_size);
    return CELLGATE_OK;
}

/* The end is counted from the start of the file, its user block included. */
static cellgate_status check_end(cg_h5 *h5, uint64_t base, uint64_t end,
                                 size_t user_block)
{
    if (base != user_block)
        return not_hdf5(h5, "its base address is not where its data begins");
    if (end > h5->size + (uint64_t)user_block)
        return cut_short(h5);
    return CELLGATE_OK;
}

static cellgate_status read_old(cg_h5 *h5, cg_h5_cursor *cursor,
                                uint8_t version, size_t user_block)
{
    uint64_t base, end;
    cellgate_status status;

    cg_h5_skip(cursor, 4); /* versions of other parts, reserved */
    status = read_widths(h5, cursor);
    if (status != CELLGATE_OK)
        return status;
    /* Reserved, ranks of trees, flags. */
    cg_h5_skip(cursor, version == 0 ? 9 : 13);
    base = cg_h5_address(cursor);
    (void)cg_h5_address(cursor); /* free space */
    end = cg_h5_address(cursor);
    (void)cg_h5_address(cursor); /* driver */
    (void)cg_h5_address(cursor); /* the root's name */
    h5->root = cg_h5_address(cursor);
    return cursor->bad ? cut_short(h5) : check_end(h5, base, end, user_block);
}

static cellgate_status read_new(cg_h5 *h5, cg_h5_cursor *cursor,
                                size_t user_block)
{
    const uint8_t *start = h5->image;
    uint64_t base, end;
    size_t size;
    uint32_t sum;
    cellgate_status status = read_widths(h5, cursor);

    if (status != CELLGATE_OK)
        return status;
    cg_h5_skip(cursor, 1); /* flags */
    base = cg_h5_address(cursor);
    (void)cg_h5_address(cursor); /* extension */
    end = cg_h5_address(cursor);
    h5->root = cg_h5_address(cursor);
    size = (size_t)(cursor->at - start);
    sum = cg_h5_u32(cursor);
    if (cursor->bad)
        return cut_short(h5);
    if (!cg_h5_sum_fits(sum, start, size, SIZE_MAX))
        return not_hdf5(h5, "the checksum of its superblock is wrong");
    return check_end(h5, base, end, user_block);
}

cellgate_status cg_h5_superblock(cg_h5 *h5)
{
    const uint8_t *start = h5->image;
    cg_h5_cursor cursor;
    uint8_t version;
    size_t user_block;
    cellgate_status status = skip_user_block(h5);

    if (status != CELLGATE_OK)
        return status;
    user_block = (size_t)(h5->image - start);
    cursor = (cg_h5_cursor){ .at = h5->image, .left = h5->size };
    cg_h5_skip(&cursor, sizeof signature - 1);
    version = cg_h5_u8(&cursor);
    if (cursor.bad)
        return cut_short(h5);
    if (version <= 1)
        return read_old(h5, &cursor, version, user_block);
    if (version <= 3)
        return read_new(h5, &cursor, user_block);
    return not_hdf5(h5, "its superblock is of none of the versions 0 to 3");
}
