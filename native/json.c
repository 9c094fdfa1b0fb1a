/* JSON: a parser that accepts less than Python's, and a printer of the same text as swarm_hook_core/json_text.py. */
#include "swarm_check.h"

#include <stdio.h>
#include <string.h>

#define DEEPEST 24         /* levels of nesting */
#define LONGEST_NUMBER 200 /* digits */
#define MOST_NODES 2048
#define MOST_MEMBERS 100 /* of an object that is printed */

static struct node nodes[MOST_NODES];
static size_t node_count;

struct scanner {
    const char *at;
    const char *end;
};

static void skip_blanks(struct scanner *scan) {
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r'))
        scan->at++;
}

static bool takes(struct scanner *scan, char sign) {
    skip_blanks(scan);
    if (scan->at == scan->end || *scan->at != sign)
        return false;
    scan->at++;
    return true;
}

static int digit_of(char sign) {
    if (sign >= '0' && sign <= '9')
        return sign - '0';
    if (sign >= 'a' && sign <= 'f')
        return sign - 'a' + 10;
    if (sign >= 'A' && sign <= 'F')
        return sign - 'A' + 10;
    return -1;
}

/* Skip an escape behind its backslash; return the UTF-16 unit that it stands for. */
static int read_escape(struct scanner *scan) {
    static const char signs[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (scan->at == scan->end)
        hand_over("a text that is cut off");
    char sign = *scan->at++;
    if (sign != 'u') {
        const char *found = sign ? strchr(signs, sign) : NULL;
        if (!found)
            hand_over("an unknown escape");
        return meant[found - signs];
    }
    int code = 0;
    for (int place = 0; place < 4; place++) {
        int digit = scan->at < scan->end ? digit_of(*scan->at++) : -1;
        if (digit < 0)
            hand_over("an escape without digits");
        code = code * 16 + digit;
    }
    return code;
}

static struct text read_string(struct scanner *scan, bool *has_escapes) {
    if (!takes(scan, '"'))
        hand_over("no string where one belongs");
    struct text found = {scan->at, 0};
    *has_escapes = false;
    while (scan->at < scan->end && *scan->at != '"') {
        unsigned char sign = (unsigned char)*scan->at++;
        if (sign < 0x20)
            hand_over("a control character");
        if (sign == '\\') {
            *has_escapes = true;
            read_escape(scan);
        }
    }
    if (scan->at == scan->end)
        hand_over("a string without an end");
    found.length = (size_t)(scan->at - found.at);
    scan->at++;
    return found;
}

static size_t skip_digits(struct scanner *scan) {
    const char *begin = scan->at;
    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return (size_t)(scan->at - begin);
}

static enum json_kind skip_number(struct scanner *scan) {
    const char *begin = scan->at;
    enum json_kind kind = JSON_WHOLE;
    if (*scan->at == '-')
        scan->at++;
    const char *first = scan->at;
    size_t digits = skip_digits(scan);
    if (!digits || (digits > 1 && *first == '0'))
        hand_over("no number");
    if (*begin == '-' && *first == '0')
        kind = JSON_FRACTION; /* Python prints it without its sign */
    if (scan->at < scan->end && *scan->at == '.') {
        scan->at++;
        kind = JSON_FRACTION;
        if (!skip_digits(scan))
            hand_over("no fraction");
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        scan->at++;
        kind = JSON_FRACTION;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
            scan->at++;
        if (!skip_digits(scan))
            hand_over("no exponent");
    }
    if (scan->at - begin > LONGEST_NUMBER)
        hand_over("a long number");
    return kind;
}

static bool skip_word(struct scanner *scan, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
        return false;
    scan->at += length;
    return true;
}

static struct node *read_value(struct scanner *scan, int depth);

/* Read the members or items of `outer` behind its bracket. */
static void read_inside(struct scanner *scan, struct node *outer, int depth) {
    char close = outer->kind == JSON_OBJECT ? '}' : ']';
    struct node **place = &outer->first;
    if (takes(scan, close))
        return;
    do {
        struct text name = {NULL, 0};
        bool has_escapes = false;
        if (outer->kind == JSON_OBJECT) {
            name = read_string(scan, &has_escapes);
            if (has_escapes || !takes(scan, ':'))
                hand_over("an escape in a member's name, or no value");
        }
        struct node *inner = read_value(scan, depth + 1);
        inner->name = name;
        *place = inner;
        place = &inner->next;
    } while (takes(scan, ','));
    if (!takes(scan, close))
        hand_over("nesting without an end");
}

static struct node *read_value(struct scanner *scan, int depth) {
    skip_blanks(scan);
    if (depth > DEEPEST || scan->at == scan->end || node_count == MOST_NODES)
        hand_over("deep nesting, many values, or no value");
    struct node *node = &nodes[node_count++];
    memset(node, 0, sizeof *node);
    node->raw.at = scan->at;
    char sign = *scan->at;
    if (sign == '"') {
        node->kind = JSON_TEXT;
        node->raw = read_string(scan, &node->has_escapes);
        return node;
    }
    if (sign == '{' || sign == '[') {
        node->kind = sign == '{' ? JSON_OBJECT : JSON_LIST;
        scan->at++;
        read_inside(scan, node, depth);
    } else if (sign == '-' || (sign >= '0' && sign <= '9')) {
        node->kind = skip_number(scan);
    } else if (skip_word(scan, "true") || skip_word(scan, "false") || skip_word(scan, "null")) {
        node->kind = JSON_WORD;
    } else {
        hand_over("an unknown value");
    }
    node->raw.length = (size_t)(scan->at - node->raw.at);
    return node;
}

/* Parse one document. Its nodes stand as long as its text. */
const struct node *parse_json(struct text text) {
    struct scanner scan = {text.at, text.at + text.length};
    const struct node *root = read_value(&scan, 0);
    skip_blanks(&scan);
    if (scan.at != scan.end)
        hand_over("text behind the document");
    return root;
}

/* Return the member of an object with that name, or NULL. */
const struct node *member_of(const struct node *object, const char *name) {
    const struct node *found = NULL;
    for (const struct node *member = object->first; member; member = member->next) {
        if (member->name.length != strlen(name) || memcmp(member->name.at, name, member->name.length) != 0)
            continue;
        if (found)
            hand_over("a member twice");
        found = member;
    }
    return found;
}

/* Decode the text of a node into `into`, and end it with a NUL. A character that is not ASCII and stands as an escape
 * becomes 0x80: those who read it look for ASCII alone. */
struct text decoded(const struct node *node, char *into, size_t room) {
    struct scanner scan = {node->raw.at, node->raw.at + node->raw.length};
    size_t length = 0;
    while (scan.at < scan.end) {
        int sign = (unsigned char)*scan.at++;
        if (sign == '\\')
            sign = read_escape(&scan);
        if (sign == 0 || length + 1 >= room)
            hand_over("a NUL in a text, or a long one");
        into[length++] = (char)(sign < 0x100 ? sign : 0x80);
    }
    into[length] = 0;
    return (struct text){into, length};
}

/* ------------------------------------------------------------------------------------------------ the printer */

void print_part(struct print *print, const char *text, size_t length) {
    if (print->room - print->length <= length)
        hand_over("a long text");
    memcpy(print->at + print->length, text, length);
    print->length += length;
    print->at[print->length] = 0;
}

void print_words(struct print *print, const char *words) { print_part(print, words, strlen(words)); }

static void print_unit(struct print *print, int unit) {
    static const char special[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    char text[8];
    const char *found = unit && unit < 0x80 ? strchr(special, unit) : NULL;
    if (found)
        snprintf(text, sizeof text, "\\%c", letters[found - special]);
    else if (unit >= ' ' && unit <= '~')
        snprintf(text, sizeof text, "%c", unit);
    else
        snprintf(text, sizeof text, "\\u%04x", (unsigned)unit);
    print_words(print, text);
}

/* Take one character of UTF-8 off the scanner: strictly, as Python keeps other bytes in another way. */
static int read_character(struct scanner *scan) {
    unsigned char first = (unsigned char)*scan->at++;
    if (first < 0x80)
        return first;
    int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    int code = first & (0x3f >> more);
    if (first < 0xc2 || first > 0xf4 || scan->end - scan->at < more)
        hand_over("bytes that are no text");
    for (int place = 0; place < more; place++) {
        unsigned char next = (unsigned char)*scan->at++;
        if (next >> 6 != 2)
            hand_over("bytes that are no text");
        code = code << 6 | (next & 0x3f);
    }
    bool is_long = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
    if (is_long || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        hand_over("bytes that are no text");
    return code;
}

/* Print `text` as a JSON string; `has_escapes` tells if it stands in JSON already, with escapes. */
void print_string(struct print *print, struct text text, bool has_escapes) {
    struct scanner scan = {text.at, text.at + text.length};
    print_words(print, "\"");
    while (scan.at < scan.end) {
        /* Most texts are long and plain. */
        const char *begin = scan.at;
        while (scan.at < scan.end && *scan.at >= ' ' && *scan.at <= '~' && *scan.at != '"' && *scan.at != '\\')
            scan.at++;
        print_part(print, begin, (size_t)(scan.at - begin));
        if (scan.at == scan.end)
            break;
        if (has_escapes && *scan.at == '\\') {
            scan.at++;
            print_unit(print, read_escape(&scan));
            continue;
        }
        int code = read_character(&scan);
        if (code < 0x10000) {
            print_unit(print, code);
        } else {
            print_unit(print, 0xd800 + ((code - 0x10000) >> 10));
            print_unit(print, 0xdc00 + ((code - 0x10000) & 0x3ff));
        }
    }
    print_words(print, "\"");
}

static int compared(struct text left, struct text right) {
    size_t shorter = left.length < right.length ? left.length : right.length;
    int order = memcmp(left.at, right.at, shorter);
    if (order || left.length == right.length)
        return order;
    return left.length < right.length ? -1 : 1;
}

/* Put the members of an object, or the items of a list, into `inside`; return their number. */
static size_t list_inside(const struct node *outer, const struct node **inside, bool is_sorted) {
    size_t count = 0;
    for (const struct node *inner = outer->first; inner; inner = inner->next) {
        if (count == MOST_MEMBERS)
            hand_over("many members");
        size_t place = count++;
        if (outer->kind == JSON_OBJECT) {
            for (size_t before = 0; before < place; before++)
                if (compared(inside[before]->name, inner->name) == 0)
                    hand_over("a member twice");
            for (; is_sorted && place && compared(inside[place - 1]->name, inner->name) > 0; place--)
                inside[place] = inside[place - 1];
        }
        inside[place] = inner;
    }
    return count;
}

/* Print a value; the members of each object are sorted by their names if `is_sorted`. */
void print_json(struct print *print, const struct node *node, bool is_sorted) {
    if (node->kind == JSON_FRACTION)
        hand_over("a number that Python prints in another way");
    if (node->kind == JSON_TEXT) {
        print_string(print, node->raw, true);
    } else if (node->kind == JSON_OBJECT || node->kind == JSON_LIST) {
        const struct node *inside[MOST_MEMBERS];
        size_t count = list_inside(node, inside, is_sorted);
        print_words(print, node->kind == JSON_OBJECT ? "{" : "[");
        for (size_t place = 0; place < count; place++) {
            if (place)
                print_words(print, ", ");
            if (node->kind == JSON_OBJECT) {
                print_string(print, inside[place]->name, false);
                print_words(print, ": ");
            }
            print_json(print, inside[place], is_sorted);
        }
        print_words(print, node->kind == JSON_OBJECT ? "}" : "]");
    } else {
        print_part(print, node->raw.at, node->raw.length);
    }
}
