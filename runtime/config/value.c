/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/config/value.h"

#include <inttypes.h>

#include "runtime/config/suggest.h"

/* Digits of a number of seconds: any such number is exact in a double. */
#define SECONDS_DIGITS 15

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

/* Digits at *text into *number; *text moves behind them. False: none, or more
   than an int64_t holds. */
static bool take_digits(const char **text, int64_t *number)
{
    const char *at = *text;
    int64_t value = 0;

    if (!is_digit(*at))
        return false;
    for (; is_digit(*at); at++) {
        int digit = *at - '0';

        if (value > (INT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *text = at;
    *number = value;
    return true;
}

static bool within_bounds(const cellgate_key *key, int64_t number)
{
    if (key->minimum == 0 && key->maximum == 0)
        return true;
    return number >= key->minimum && number <= key->maximum;
}

/* As words of the settings' own, in ASCII: strcasecmp() asks the locale. */
static bool same_word(const char *text, const char *word)
{
    for (; *word != '\0'; text++, word++) {
        char letter = *text;

        if (letter >= 'A' && letter <= 'Z')
            letter = (char)(letter - 'A' + 'a');
        if (letter != *word)
            return false;
    }
    return *text == '\0';
}

static bool parse_boolean(const char *text, cg_value *value)
{
    static const char *const words[][2] = {
        { "no", "yes" }, { "false", "true" }, { "off", "on" }, { "0", "1" }
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (int truth = 0; truth < 2; truth++)
            if (same_word(text, words[i][truth])) {
                value->integer = truth;
                value->text = words[0][truth];
                return true;
            }
    return false;
}

static bool parse_integer(const cellgate_key *key, const char *text,
                          cg_value *value)
{
    bool negative = *text == '-';
    int64_t number;

    text += negative || *text == '+';
    if (!take_digits(&text, &number) || *text != '\0')
        return false;
    number = negative ? -number : number;
    if (!within_bounds(key, number))
        return false;
    value->integer = number;
    (void)snprintf(value->buffer, sizeof value->buffer, "%" PRId64, number);
    value->text = value->buffer;
    return true;
}

static bool parse_size(const cellgate_key *key, const char *text,
                       cg_value *value)
{
    static const char units[] = "KMGT";
    int64_t number;

    if (!take_digits(&text, &number))
        return false;
    text = skip_blanks(text);
    if (*text != '\0') {
        char letter = *text >= 'a' ? (char)(*text - 'a' + 'A') : *text;
        const char *unit = strchr(units, letter);
        int shift;

        if (unit == NULL || text[1] != '\0')
            return false;
        shift = 10 * (int)(unit - units + 1);
        if (number > INT64_MAX >> shift)
            return false;
        number <<= shift;
    }
    if (!within_bounds(key, number))
        return false;
    value->integer = number;
    (void)snprintf(value->buffer, sizeof value->buffer, "%" PRId64, number);
    value->text = value->buffer;
    return true;
}

/* A decimal number: digits / 10^decimals. */
typedef struct decimal {
    int64_t digits;
    int decimals;
} decimal;

static bool take_decimal(const char **text, decimal *number)
{
    const char *at = *text;
    int length = 0;
    bool fraction = false;

    number->digits = 0;
    number->decimals = 0;
    if (!is_digit(*at))
        return false;
    for (;; at++) {
        if (*at == '.' && !fraction && is_digit(at[1])) {
            fraction = true;
            continue;
        }
        if (!is_digit(*at))
            break;
        number->digits = number->digits * 10 + (*at - '0');
        number->decimals += fraction;
        length += number->digits != 0; /* leading zeros are free */
        if (length > SECONDS_DIGITS || number->decimals > SECONDS_DIGITS)
            return false;
    }
    *text = at;
    return true;
}

static bool apply_unit(const char *unit, decimal *number)
{
    static const struct {
        const char *name;
        int factor;
        int decimals;
    } units[] = { { "", 1, 0 },    { "s", 1, 0 },  { "ms", 1, 3 },
                  { "us", 1, 6 },  { "ns", 1, 9 }, { "min", 60, 0 },
                  { "h", 3600, 0 } };

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].name) == 0) {
            number->digits *= units[i].factor; /* 10^15 * 3600 < 2^63 */
            number->decimals += units[i].decimals;
            while (number->decimals > 0 && number->digits % 10 == 0) {
                number->digits /= 10;
                number->decimals--;
            }
            return true;
        }
    return false;
}

/* printf's %f would take the decimal sign from the locale. */
static void decimal_write(const decimal *number, char *text, size_t size)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%0*" PRId64,
                          number->decimals + 1, number->digits);
    int whole = length - number->decimals;

    if (number->decimals == 0)
        (void)snprintf(text, size, "%s", digits);
    else
        (void)snprintf(text, size, "%.*s.%s", whole, digits, digits + whole);
}

static double decimal_double(const decimal *number)
{
    double value = (double)number->digits;
    double divisor = 1;

    for (int i = 0; i < number->decimals; i++)
        divisor *= 10; /* exact up to 10^22 */
    return value / divisor;
}

static bool parse_seconds(const char *text, cg_value *value)
{
    decimal number;

    if (!take_decimal(&text, &number) ||
        !apply_unit(skip_blanks(text), &number))
        return false;
    value->seconds = decimal_double(&number);
    if (value->seconds > CG_VALUE_SECONDS_MAX)
        return false;
    decimal_write(&number, value->buffer, sizeof value->buffer);
    value->text = value->buffer;
    return true;
}

static bool parse_choice(const char *choices, const char *text, cg_value *value)
{
    size_t text_length = strlen(text);
    int position = 0;

    while (choices != NULL && *choices != '\0') {
        size_t length = strcspn(choices, "|");

        if (length > 0 && length == text_length &&
            memcmp(choices, text, length) == 0) {
            value->integer = position;
            value->text = text;
            return true;
        }
        choices += length;
        choices += *choices == '|';
        position++;
    }
    return false;
}

static bool parse(const cellgate_key *key, const char *text, cg_value *value)
{
    value->integer = 0;
    value->seconds = 0;
    switch ((cellgate_key_type)key->type) {
    case CELLGATE_KEY_TEXT:
        value->text = text;
        return true;
    case CELLGATE_KEY_BOOLEAN:
        return parse_boolean(text, value);
    case CELLGATE_KEY_INTEGER:
        return parse_integer(key, text, value);
    case CELLGATE_KEY_SIZE:
        return parse_size(key, text, value);
    case CELLGATE_KEY_SECONDS:
        return parse_seconds(text, value);
    case CELLGATE_KEY_CHOICE:
        return parse_choice(key->choices, text, value);
    }
    return false;
}

/* "a|b|c" as "a, b or c". */
static void choices_write(const char *choices, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    while (*choices != '\0' && at < size) {
        size_t length = strcspn(choices, "|");
        const char *rest = choices + length + (choices[length] == '|');
        const char *joint = strchr(rest, '|') != NULL ? ", " : " or ";

        at += (size_t)snprintf(text + at, size - at, "%.*s%s", (int)length,
                               choices, *rest != '\0' ? joint : "");
        choices = rest;
    }
}

static void expected_write(const cellgate_key *key, char *text, size_t size)
{
    char bounds[64] = "";

    if (key->minimum != 0 || key->maximum != 0)
        (void)snprintf(bounds, sizeof bounds, " from %" PRId64 " to %" PRId64,
                       key->minimum, key->maximum);
    switch ((cellgate_key_type)key->type) {
    case CELLGATE_KEY_TEXT:
        (void)snprintf(text, size, "text");
        return;
    case CELLGATE_KEY_BOOLEAN:
        (void)snprintf(text, size, "yes or no");
        return;
    case CELLGATE_KEY_INTEGER:
        (void)snprintf(text, size, "a whole number%s", bounds);
        return;
    case CELLGATE_KEY_SIZE:
        (void)snprintf(text, size,
                       "a size%s in bytes, such as 4096 or 64M (K, M, G, T: "
                       "powers of 1024)",
                       bounds);
        return;
    case CELLGATE_KEY_SECONDS:
        (void)snprintf(text, size,
                       "a time such as 5, 1.5 s or 250 ms (ns, us, ms, s, "
                       "min, h; at most %d s)",
                       CG_VALUE_SECONDS_MAX);
        return;
    case CELLGATE_KEY_CHOICE:
        choices_write(key->choices != NULL ? key->choices : "", text, size);
        return;
    }
    (void)snprintf(text, size,
                   "a value of a type that this version of "
                   "Cellgate does not know");
}

bool cg_value_parse(const cellgate_key *key, const char *text, cg_value *value,
                    char *problem, size_t problem_size)
{
    cg_suggestion meant;
    char expected[200];
    char hint[96] = "";

    if (parse(key, text, value))
        return true;
    expected_write(key, expected, sizeof expected);
    cg_suggestion_init(&meant, text);
    if (key->type == CELLGATE_KEY_CHOICE)
        cg_suggestion_offer_choices(&meant, key->choices);
    else if (key->type == CELLGATE_KEY_BOOLEAN)
        cg_suggestion_offer_choices(&meant, "yes|no|true|false|on|off");
    if (strstr(text, " #") != NULL || strstr(text, "\t#") != NULL)
        (void)snprintf(hint, sizeof hint,
                       " (a comment goes on a line of its own)");
    else if (meant.best != NULL)
        (void)snprintf(hint, sizeof hint, " (did you mean %.*s?)", meant.length,
                       meant.best);
    (void)snprintf(problem, problem_size, "expected %s, not \"%s\"%s", expected,
                   text, hint);
    return false;
}
