/* A first look at a command: the everyday ones that only read, as swarm_hook_core/shell/plain.py recognises them.
 *
 * The tables are those of that module, without the commands that add to a file; a test compares them. A command that is
 * not recognised goes to Python. */
#include "swarm_check.h"

#include <string.h>

#define LONGEST 1000 /* characters */
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:+@%=^"
#define PATTERN '\2' /* in a word: the shell may expand it to names of files */

static const char *const READERS[] = {"ls",       "pwd",  "echo", "true", "basename", "dirname", "realpath",
                                      "readlink", "test", "seq",  "grep", "egrep",    "fgrep",   NULL};
static const char *const READERS_BUT[] = {"wc",    "cut",       "tr",     "cmp",    "comm",  "diff",     "stat",
                                          "which", "date",      "id",     "whoami", "uname", "hostname", "df",
                                          "du",    "sleep",     "md5sum", "uptime", "nproc", "sha256sum",
                                          "printenv", NULL};
static const char *const SHOW[] = {"cat", "head", "tail", "nl", "sed", NULL};
static const char *const SUCCEED[] = {"cat", "head", "tail", "nl", "sed", "ls", "echo", "pwd", "true", "git", NULL};
static const char *const FIND_WRITES[] = {"-exec", "-ok", "-delete", "-fprint", "-fls", NULL};
static const char *const RG_WRITES[] = {"--pre", "--hostname-bin", NULL};
static const char *const GIT_LOOKS[] = {"status", "log", "diff", "show", "rev-parse", "ls-files", NULL};
static const char *const GIT_WRITES[] = {"--output", "--ext-diff", "--textconv", NULL};
static const char *const GIT_BRANCH[] = {"-a", "-r", "-v", "-vv", "--all", "--remotes", "--list", "--show-current", NULL};
static const char *const TESTS[] = {"-q",   "-qq",        "-x",        "-vv",       "-s",      "--lf", "--ff",
                                    "--tb=short", "--tb=long", "--tb=line", "--tb=no", "--tb=native", NULL};
#define SORT_LETTERS "-nruhVfb"
#define UNIQ_LETTERS "-cdui"

enum mark { WORD, STREAM, AND, OR, PIPE, END };

struct token {
    enum mark mark;
    const char *text;
};

static struct token tokens[LONGEST];
static size_t token_count;
static char letters[2 * LONGEST + 2];

bool is_listed(const char *text, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(text, *list))
            return true;
    return false;
}

static bool begins_with(const char *text, const char *start) { return !strncmp(text, start, strlen(start)); }

static bool begins_with_any(const char *text, const char *const *starts) {
    for (; *starts; starts++)
        if (begins_with(text, *starts))
            return true;
    return false;
}

/* Read the operator at `text`; return its length, 0 for another text. */
static size_t read_operator(const char *text, bool has_word, const char *word, struct token *token) {
    static const struct {
        const char *text;
        enum mark mark;
    } operators[] = {{"2>&1", STREAM}, {"2>/dev/null", STREAM}, {"&>/dev/null", STREAM}, {">/dev/null", STREAM},
                     {"&&", AND},      {"||", OR},              {"|", PIPE},             {";", END},
                     {"\n", END}};
    for (size_t place = 0; place < sizeof operators / sizeof *operators; place++) {
        size_t length = strlen(operators[place].text);
        if (!begins_with(text, operators[place].text))
            continue;
        bool is_stream = operators[place].mark == STREAM;
        if (is_stream && has_word && *word && !word[strspn(word, "0123456789")])
            return 0; /* the number of a stream */
        if (is_stream && text[length] && !strchr(" ;|&\n", text[length]))
            return 0;
        *token = (struct token){operators[place].mark, operators[place].text};
        return length;
    }
    return 0;
}

/* Part `text` into words and operators; false if the shell does more with it. */
static bool read_tokens(const char *text) {
    char *into = letters, *word = NULL;
    token_count = 0;
    if (strlen(text) > LONGEST)
        return false;
    for (const char *at = text; *at;) {
        if (!word)
            word = into;
        bool has_word = into != word || (at > text && (at[-1] == '\'' || at[-1] == '"'));
        if (strchr(LETTERS, *at) && (has_word || !begins_with(at, "2>"))) {
            *into++ = *at++;
        } else if (strchr("*?~", *at)) {
            *into++ = PATTERN;
            at++;
        } else if (*at == '\'' || *at == '"') {
            const char *close = strchr(at + 1, *at);
            if (!close)
                return false;
            for (const char *sign = at + 1; sign < close; sign++) {
                if (*sign == '\n' || *sign < ' ' || (*at == '"' && strchr("$`\\!", *sign)))
                    return false;
                *into++ = *sign;
            }
            at = close + 1;
        } else {
            *into = 0;
            if (has_word) {
                tokens[token_count++] = (struct token){WORD, word};
                into++;
            }
            if (*at == ' ' || *at == '\t') {
                at++;
            } else {
                size_t length = read_operator(at, has_word, word, &tokens[token_count]);
                if (!length)
                    return false;
                token_count++;
                at += length;
            }
            word = NULL;
        }
    }
    bool ends_with_quote = *text && strchr("'\"", text[strlen(text) - 1]) != NULL;
    *into = 0;
    if (word && (into != word || ends_with_quote))
        tokens[token_count++] = (struct token){WORD, word};
    return true;
}

/* Read a number of lines; 0 for another text, and for numbers that mean something else. */
static long read_lines(const char *text, size_t length) {
    long number = 0;
    if (!length || length > 9)
        return 0;
    for (size_t place = 0; place < length; place++) {
        if (text[place] < '0' || text[place] > '9')
            return 0;
        number = number * 10 + (text[place] - '0');
    }
    return number;
}

/* Read ``3,9p``. */
static bool read_range(const char *text, struct shown *shown) {
    size_t length = strlen(text), comma = strcspn(text, ",");
    if (length < 2 || text[length - 1] != 'p')
        return false;
    bool is_range = comma < length;
    shown->first = read_lines(text, is_range ? comma : length - 1);
    shown->last = is_range ? read_lines(text + comma + 1, length - comma - 2) : shown->first;
    return shown->first && shown->last >= shown->first;
}

/* Read the common options of a program that shows files, and return the files; NULL if there are other options. */
static const char **after_options(const char *name, const char **rest, struct shown *shown) {
    const char *first = rest[0] ? rest[0] : "", *second = rest[0] && rest[1] ? rest[1] : "";
    *shown = (struct shown){.first = 1, .last = 10};
    if (!strcmp(name, "sed"))
        return !strcmp(first, "-n") && read_range(second, shown) ? rest + 2 : NULL;
    if (!strcmp(name, "head") || !strcmp(name, "tail")) {
        shown->is_last = *name == 't';
        if (*first != '-')
            return rest;
        bool is_apart = !strcmp(first, "-n");
        const char *number = is_apart ? second : first + 1;
        shown->last = read_lines(number, strlen(number));
        return shown->last ? rest + 1 + is_apart : NULL;
    }
    shown->is_whole = true;
    if ((!strcmp(name, "cat") && !strcmp(first, "-n")) || (!strcmp(name, "nl") && !strcmp(first, "-ba")))
        return rest + 1;
    return rest;
}

static bool shows(const char *name, const char **rest, struct look *look, bool is_whole) {
    struct shown shown;
    const char **files = after_options(name, rest, &shown);
    if (!files || (*name == 's' && files[0] && files[1]))
        return false; /* sed counts the lines of several files as if they were one */
    for (; *files; files++) {
        if (!**files || **files == '-' || !is_whole || look->count == MOST_SHOWN)
            return false;
        shown.file = *files;
        look->shown[look->count++] = shown;
    }
    return true;
}

/* Tell if git, with these words behind its name, only shows something of the repository, and no file. */
static bool is_git_look(const char **words) {
    if (words[0] && !strcmp(words[0], "--no-pager"))
        words++;
    const char *verb = words[0] ? *words++ : "";
    bool is_branch = !strcmp(verb, "branch"), is_remote = !strcmp(verb, "remote"), is_stash = !strcmp(verb, "stash");
    if (is_stash && !words[0])
        return false;
    for (const char **word = words; *word; word++) {
        if ((is_branch && !is_listed(*word, GIT_BRANCH)) || (is_remote && strcmp(*word, "-v") != 0) ||
            (is_stash && strcmp(*word, "list") != 0))
            return false;
        bool is_odd = **word != '-' || !strcmp(*word, "-") || !strcmp(*word, "--") || !strcmp(*word, "-O");
        if (!strcmp(verb, "diff") && is_odd)
            return false;
        size_t length = strcspn(*word, "=");
        for (const char *const *option = GIT_WRITES; *option; option++)
            if (strlen(*word) > 2 && **word == '-' && !strncmp(*option, *word, length))
                return false; /* the option, or its beginning */
    }
    return is_branch || is_remote || is_stash || is_listed(verb, GIT_LOOKS);
}

static bool is_test(const char **words) {
    if (!strcmp(words[0], "python") || !strcmp(words[0], "python3")) {
        if (!words[1] || strcmp(words[1], "-m") != 0)
            return false;
        words += 2;
    }
    if (!words[0] || strcmp(words[0], "pytest") != 0)
        return false;
    for (const char **word = words + 1; *word; word++)
        if (!is_listed(*word, TESTS) && (**word == '-' || !**word))
            return false;
    return true;
}

static bool has_word(const char **words, const char *wanted) {
    for (; *words; words++)
        if (!strcmp(*words, wanted))
            return true;
    return false;
}

static bool is_filter(const char **rest, const char *signs) {
    for (; *rest; rest++)
        if (**rest != '-' || (*rest)[strspn(*rest, signs)])
            return false;
    return true;
}

/* Read one command of a list; false if it is no plain one. */
static bool read_command(const char **words, struct look *look, bool is_whole) {
    const char *name = words[0], **rest = words + 1;
    if (!name)
        return false;
    if (is_listed(name, READERS)) {
        size_t length = strlen(name);
        bool is_search = length >= 4 && !strcmp(name + length - 4, "grep");
        return !is_search || (!has_word(rest, "") && !has_word(rest, "^"));
    }
    if (is_listed(name, READERS_BUT)) {
        for (; *rest; rest++)
            if (begins_with(*rest, "--") || begins_with(*rest, "-o"))
                return false;
        return true;
    }
    for (const char **word = words; *word; word++)
        if (strchr(*word, PATTERN))
            return false;
    if (is_listed(name, SHOW))
        return shows(name, rest, look, is_whole);
    if (!strcmp(name, "git"))
        return is_git_look(rest);
    if (!strcmp(name, "sort") || !strcmp(name, "uniq"))
        return is_filter(rest, *name == 's' ? SORT_LETTERS : UNIQ_LETTERS);
    if (!strcmp(name, "find") || !strcmp(name, "rg")) {
        for (const char **word = rest; *word; word++)
            if (begins_with_any(*word, *name == 'f' ? FIND_WRITES : RG_WRITES))
                return false;
        return !has_word(rest, "") && !has_word(rest, "^");
    }
    look->runs = look->runs || is_test(words);
    return is_test(words);
}

/* Find what a command does; false if it is no plain one that only reads, or runs tests. */
bool look_at_command(const char *text, struct look *look) {
    static const char *words[LONGEST + 1];
    bool has_moved = false, has_or = false, has_and = false, all_succeed = true;
    memset(look, 0, sizeof *look);
    if (!read_tokens(text) || !token_count)
        return false;
    if (tokens[token_count - 1].mark == END)
        token_count--; /* the text may end with one */
    bool is_in_pipe = false; /* the command before goes on into this one */
    for (size_t at = 0; at <= token_count; at++) {
        size_t count = 0, streams = 0;
        bool is_silent = false;
        for (; at < token_count && (tokens[at].mark == WORD || tokens[at].mark == STREAM); at++) {
            bool is_output = tokens[at].mark == STREAM && tokens[at].text[0] != '2';
            if (is_silent && (is_output || tokens[at].mark == WORD))
                return false;
            if (tokens[at].mark == WORD)
                words[count++] = tokens[at].text;
            else
                streams++;
            is_silent = is_silent || is_output;
        }
        words[count] = NULL;
        enum mark next = at < token_count ? tokens[at].mark : END;
        bool is_whole = !is_in_pipe && next != PIPE;
        size_t shown = look->count;
        all_succeed = all_succeed && (!count || is_listed(words[0], SUCCEED));
        if (count == 2 && !streams && is_whole && !strcmp(words[0], "cd") && words[1][0] != '-')
            has_moved = true;
        else if (!read_command(words, look, is_whole) || (is_silent && look->count > shown))
            return false;
        has_or = has_or || next == OR;
        has_and = has_and || next == AND;
        is_in_pipe = next == PIPE;
    }
    /* In another folder, or maybe not at all; and a search without a result ends a list. */
    return !look->count || (!has_moved && !has_or && (!has_and || all_succeed));
}
