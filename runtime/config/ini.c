/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/config/ini.h"

#include <stdbool.h>

#include <ini.h>

#include "runtime/config/complaint.h"

#define COLON "write \"key = value\", with = and not with :"

/* A part of the text, not NUL-terminated. */
typedef struct span {
    const char *start;
    size_t length;
} span;

typedef struct reader {
    const char *file;
    const char *at, *end; /* what is still to read */
    int line;             /* of the line in hand, from 1 */
    const cg_ini_events *events;
    void *context;
    cellgate_status status;
    cellgate_error *error;
    char section[CG_INI_SECTION_MAX + 1];
    bool in_section;
    /* The entry that inih was given and has to report next. */
    span key, value;
    bool pending;
} reader;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static span trim(span text)
{
    while (text.length > 0 && is_blank(text.start[0])) {
        text.start++;
        text.length--;
    }
    while (text.length > 0 && is_blank(text.start[text.length - 1]))
        text.length--;
    return text;
}

static bool span_equal(span text, const char *string)
{
    return strlen(string) == text.length &&
           memcmp(text.start, string, text.length) == 0;
}

static cg_place place_of(const reader *r)
{
    cg_place place = { r->file, r->line, r->in_section ? r->section : NULL,
                       NULL };

    return place;
}

/* Ends the reading with a complaint about the line in hand. */
#define REFUSE(r, ...)                                                         \
    do {                                                                       \
        cg_place refused_ = place_of(r);                                       \
        (r)->status = cg_complain((r)->error, &refused_, __VA_ARGS__);         \
    } while (0)

/* Bytes of the UTF-8 character at `text`, 0 if there is none (RFC 3629). */
static size_t character_length(const unsigned char *text, size_t left)
{
    size_t length = text[0] < 0x80   ? 1
                    : text[0] < 0xC2 ? 0
                    : text[0] < 0xE0 ? 2
                    : text[0] < 0xF0 ? 3
                    : text[0] < 0xF5 ? 4
                                     : 0;

    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xC0u) != 0x80u)
            return 0;
    if ((text[0] == 0xE0 && text[1] < 0xA0) || /* longer than needed */
        (text[0] == 0xF0 && text[1] < 0x90) ||
        (text[0] == 0xED && text[1] > 0x9F) || /* surrogates */
        (text[0] == 0xF4 && text[1] > 0x8F))   /* beyond U+10FFFF */
        return 0;
    return length;
}

static void check_characters(reader *r, span line)
{
    const unsigned char *text = (const unsigned char *)line.start;
    size_t at = 0;

    while (at < line.length) {
        size_t length = character_length(text + at, line.length - at);

        if (length == 0) {
            REFUSE(r,
                   "byte %zu of the line is not UTF-8; save the file as "
                   "UTF-8",
                   at + 1);
            return;
        }
        if ((text[at] < 0x20 && text[at] != '\t') || text[at] == 0x7F) {
            REFUSE(r,
                   "byte %zu of the line is a control character (0x%02X); "
                   "is this a text file?",
                   at + 1, text[at]);
            return;
        }
        at += length;
    }
}

/* The next line, without its end. False: there is none. */
static bool next_line(reader *r, span *line)
{
    const char *feed;

    if (r->at == r->end)
        return false;
    feed = memchr(r->at, '\n', (size_t)(r->end - r->at));
    line->start = r->at;
    line->length = (size_t)((feed != NULL ? feed : r->end) - r->at);
    r->at = feed != NULL ? feed + 1 : r->end;
    if (line->length > 0 && line->start[line->length - 1] == '\r')
        line->length--;
    r->line++;
    return true;
}

static void take_section(reader *r, span line)
{
    const char *close = memchr(line.start, ']', line.length);
    span name, rest, trimmed;

    r->in_section = false;
    if (close == NULL) {
        REFUSE(r, "the section's closing ] is missing");
        return;
    }
    name.start = line.start + 1;
    name.length = (size_t)(close - name.start);
    rest.start = close + 1;
    rest.length = line.length - name.length - 2;
    trimmed = trim(name);
    if (trim(rest).length > 0)
        REFUSE(r, "nothing may follow the section's ]; a comment goes on a "
                  "line of its own");
    else if (trimmed.length == 0)
        REFUSE(r, "the section has no name");
    else if (trimmed.length != name.length)
        REFUSE(r, "write [%.*s], without blanks inside the brackets",
               (int)(trimmed.length < 60 ? trimmed.length : 60), trimmed.start);
    else if (name.length > CG_INI_SECTION_MAX)
        REFUSE(r, "the section's name has %zu bytes; at most %d are read",
               name.length, CG_INI_SECTION_MAX);
    if (r->status != CELLGATE_OK)
        return;
    memcpy(r->section, name.start, name.length);
    r->section[name.length] = '\0';
    r->in_section = true;
    r->status = r->events->section(r->context, r->section, r->line, r->error);
}

/* Where inih would start a comment inside a line; NULL: nowhere. */
static const char *inline_comment(span line)
{
    for (size_t i = 1; i < line.length; i++)
        if (line.start[i] == ';' && is_blank(line.start[i - 1]))
            return line.start + i;
    return NULL;
}

static bool is_quoted(span value)
{
    char first = value.length > 1 ? value.start[0] : '\0';

    return (first == '"' || first == '\'') &&
           value.start[value.length - 1] == first;
}

static void take_entry(reader *r, span line)
{
    const char *equals = memchr(line.start, '=', line.length);
    cg_place place = place_of(r);
    char name[CG_INI_SECTION_MAX + 1];

    if (equals == NULL) {
        if (memchr(line.start, ':', line.length) != NULL)
            REFUSE(r, COLON);
        else
            REFUSE(r, "expected \"key = value\", \"[section]\", or a comment "
                      "that begins with # or ;");
        return;
    }
    r->key.start = line.start;
    r->key.length = (size_t)(equals - line.start);
    r->key = trim(r->key);
    r->value.start = equals + 1;
    r->value.length = (size_t)(line.start + line.length - r->value.start);
    r->value = trim(r->value);
    if (r->key.length == 0 || r->key.length >= sizeof name) {
        REFUSE(r, r->key.length == 0 ? "a key is missing before the ="
                                     : "there is no key of such a length");
        return;
    }
    if (memchr(r->key.start, ':', r->key.length) != NULL) {
        REFUSE(r, COLON);
        return;
    }
    memcpy(name, r->key.start, r->key.length);
    name[r->key.length] = '\0';
    place.key = name;
    if (!r->in_section)
        r->status = cg_complain(r->error, &place,
                                "a key cannot stand before the first "
                                "[section]");
    else if (inline_comment(line) != NULL)
        r->status = cg_complain(
            r->error, &place,
            "a value cannot contain a blank followed by ; since that begins a "
            "comment; put the comment on a line of its own");
    else if (is_quoted(r->value))
        r->status = cg_complain(r->error, &place,
                                "write the value without quotes: they would "
                                "become part of it");
    r->pending = r->status == CELLGATE_OK;
}

/* Checks one line; sets `pass` to what inih is to be given. */
static void take_line(reader *r, span line, span *pass)
{
    span content = trim(line);

    pass->start = line.start;
    pass->length = 0;
    check_characters(r, line);
    if (r->status != CELLGATE_OK || content.length == 0 ||
        content.start[0] == '#' || content.start[0] == ';')
        return;
    if (content.start != line.start) {
        REFUSE(r, "a line must not be indented (only comments may): move it to "
                  "the first column");
        return;
    }
    *pass = content;
    if (content.start[0] == '[')
        take_section(r, content);
    else
        take_entry(r, content);
}

/* inih's reader: like fgets(), of a line that has been checked. */
static char *read_line(char *buffer, int size, void *stream)
{
    reader *r = stream;
    span line, pass;

    if (r->status == CELLGATE_OK && r->pending)
        REFUSE(r, "the INI library does not read this line as written");
    if (r->status != CELLGATE_OK || size < 1 || !next_line(r, &line))
        return NULL;
    take_line(r, line, &pass);
    if (r->status == CELLGATE_OK && pass.length > (size_t)size - 1)
        REFUSE(r, "the line has %zu bytes; at most %d are read", pass.length,
               size - 1);
    if (r->status != CELLGATE_OK)
        return NULL;
    memcpy(buffer, pass.start, pass.length);
    buffer[pass.length] = '\0';
    return buffer;
}

/* inih's handler: returns whether it is content. */
static int take_parsed(void *user, const char *section, const char *name,
                       const char *value)
{
    reader *r = user;

    if (name == NULL) /* some builds of inih report headers too */
        return 1;
    if (r->status != CELLGATE_OK)
        return 0;
    if (!r->pending || value == NULL || strcmp(section, r->section) != 0 ||
        !span_equal(r->key, name) || !span_equal(r->value, value)) {
        REFUSE(r, "the INI library does not read this line as written");
        return 0;
    }
    r->pending = false;
    r->status = r->events->entry(r->context, name, value, r->line, r->error);
    return r->status == CELLGATE_OK;
}

static void skip_byte_order_mark(reader *r, size_t size)
{
    const char *text = r->at;

    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        r->at += 3;
    } else if (size >= 2 && (memcmp(text, "\xFF\xFE", 2) == 0 ||
                             memcmp(text, "\xFE\xFF", 2) == 0)) {
        r->line = 1;
        REFUSE(r, "this is UTF-16 text; save the file as UTF-8");
    }
}

cellgate_status cg_ini_read(const char *file, const char *text, size_t size,
                            const cg_ini_events *events, void *context,
                            cellgate_error *error)
{
    reader r = { .file = file,
                 .events = events,
                 .context = context,
                 .status = CELLGATE_OK,
                 .error = error };
    int refused;

    if (size == 0)
        return CELLGATE_OK;
    r.at = text;
    r.end = text + size;
    skip_byte_order_mark(&r, size);
    refused = ini_parse_stream(read_line, &r, take_parsed, &r);
    if (r.status == CELLGATE_OK && r.pending)
        REFUSE(&r, "the INI library does not read this line as written");
    if (r.status != CELLGATE_OK)
        return r.status;
    if (refused == -2)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "%s: out of memory",
                             file);
    if (refused != 0) {
        r.line = refused; /* one line of inih's is one of the text's */
        REFUSE(&r, "the INI library does not accept this line");
    }
    return r.status;
}
