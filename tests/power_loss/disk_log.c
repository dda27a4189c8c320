/* Loaded into a process (LD_PRELOAD), writes down in their order all calls that change files below one folder, with their data.

   DISK_LOG is where, DISK_LOG_ROOT the folder. Each entry: the call as a letter, descriptor, offset, two lengths, two
   texts or data. What fails is not written down. `disks.py` reads it. One lock around each call and its entry, so that the
   order of entries is the order in which the calls were made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 65536

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static unsigned char below[FILES]; /* descriptors of files below the folder */
static int log_file = -1;
static const char *root;

struct entry {
    char call;
    int32_t descriptor;
    int64_t offset;
    uint32_t first, second;
} __attribute__((packed));

__attribute__((constructor)) static void begin(void) {
    const char *place = getenv("DISK_LOG");
    root = getenv("DISK_LOG_ROOT");
    if (place != NULL && root != NULL)
        log_file = (int)syscall(SYS_openat, AT_FDCWD, place, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_file < 0) abort();
}

static void put(const void *data, size_t length) {
    const char *at = data;
    while (length > 0) {
        long done = syscall(SYS_write, log_file, at, length);
        if (done < 0) abort();
        at += done;
        length -= (size_t)done;
    }
}

static void note(char call, int descriptor, int64_t offset, const void *first, size_t m, const void *second, size_t n) {
    struct entry entry = {call, descriptor, offset, (uint32_t)m, (uint32_t)n};
    put(&entry, sizeof entry);
    put(first, m);
    put(second, n);
}

static int inside(const char *path) {
    size_t length = strlen(root);
    return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}
static int tracked(int descriptor) { return descriptor >= 0 && descriptor < FILES && below[descriptor]; }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* The call, then its entry; `errno` stays what the call left. */
#define LOGGED(type, condition, call, entry)  \
    do {                                      \
        pthread_mutex_lock(&lock);            \
        type result = (call);                 \
        int kept = errno;                     \
        if (result >= 0 && (condition)) {     \
            entry;                            \
        }                                     \
        errno = kept;                         \
        pthread_mutex_unlock(&lock);          \
        return result;                        \
    } while (0)

static void opened(int descriptor, const char *path, int flags) {
    if (descriptor >= FILES) abort();
    below[descriptor] = (unsigned char)inside(path);
    if (below[descriptor]) note('o', descriptor, flags, path, strlen(path), NULL, 0);
}

#define MODE                                       \
    mode_t mode = 0;                               \
    if (flags & (O_CREAT | __O_TMPFILE)) {         \
        va_list given;                             \
        va_start(given, flags);                    \
        mode = va_arg(given, mode_t);              \
        va_end(given);                             \
    }

int open(const char *path, int flags, ...) {
    MODE LOGGED(int, 1, REAL(open)(path, flags, mode), opened(result, path, flags));
}
int open64(const char *path, int flags, ...) {
    MODE LOGGED(int, 1, REAL(open64)(path, flags, mode), opened(result, path, flags));
}
int openat(int folder, const char *path, int flags, ...) {
    MODE LOGGED(int, 1, REAL(openat)(folder, path, flags, mode), opened(result, path, flags));
}
int openat64(int folder, const char *path, int flags, ...) {
    MODE LOGGED(int, 1, REAL(openat64)(folder, path, flags, mode), opened(result, path, flags));
}
int close(int descriptor) {
    pthread_mutex_lock(&lock);
    if (descriptor >= 0 && descriptor < FILES) below[descriptor] = 0;
    int result = REAL(close)(descriptor);
    pthread_mutex_unlock(&lock);
    return result;
}

ssize_t write(int descriptor, const void *data, size_t length) {
    LOGGED(ssize_t, tracked(descriptor), REAL(write)(descriptor, data, length),
           note('w', descriptor, lseek(descriptor, 0, SEEK_CUR) - result, data, (size_t)result, NULL, 0));
}
ssize_t pwrite(int descriptor, const void *data, size_t length, off_t offset) {
    LOGGED(ssize_t, tracked(descriptor), REAL(pwrite)(descriptor, data, length, offset),
           note('w', descriptor, offset, data, (size_t)result, NULL, 0));
}
ssize_t pwrite64(int descriptor, const void *data, size_t length, off64_t offset) {
    LOGGED(ssize_t, tracked(descriptor), REAL(pwrite64)(descriptor, data, length, offset),
           note('w', descriptor, offset, data, (size_t)result, NULL, 0));
}
int ftruncate(int descriptor, off_t length) {
    LOGGED(int, tracked(descriptor), REAL(ftruncate)(descriptor, length),
           note('t', descriptor, length, NULL, 0, NULL, 0));
}
int ftruncate64(int descriptor, off64_t length) {
    LOGGED(int, tracked(descriptor), REAL(ftruncate64)(descriptor, length),
           note('t', descriptor, length, NULL, 0, NULL, 0));
}
int fsync(int descriptor) {
    LOGGED(int, tracked(descriptor), REAL(fsync)(descriptor), note('s', descriptor, 0, NULL, 0, NULL, 0));
}
int fdatasync(int descriptor) {
    LOGGED(int, tracked(descriptor), REAL(fdatasync)(descriptor), note('s', descriptor, 0, NULL, 0, NULL, 0));
}

int rename(const char *from, const char *to) {
    LOGGED(int, inside(to), REAL(rename)(from, to), note('r', -1, 0, from, strlen(from), to, strlen(to)));
}
int link(const char *from, const char *to) {
    LOGGED(int, inside(to), REAL(link)(from, to), note('l', -1, 0, from, strlen(from), to, strlen(to)));
}
int unlink(const char *path) {
    LOGGED(int, inside(path), REAL(unlink)(path), note('u', -1, 0, path, strlen(path), NULL, 0));
}
int rmdir(const char *path) {
    LOGGED(int, inside(path), REAL(rmdir)(path), note('u', -1, 0, path, strlen(path), NULL, 0));
}
int mkdir(const char *path, mode_t mode) {
    LOGGED(int, inside(path), REAL(mkdir)(path, mode), note('m', -1, 0, path, strlen(path), NULL, 0));
}

/* What would go past the log: nobody calls it today; who begins to is told. */
#define UNKNOWN(call)                                                            \
    do {                                                                         \
        static const char words[] = "disk_log.c does not know " call "\n";       \
        if (syscall(SYS_write, 2, words, sizeof words - 1) < 0) abort();         \
        abort();                                                                 \
    } while (0)

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    if (tracked(descriptor)) UNKNOWN("writev");
    return REAL(writev)(descriptor, parts, count);
}
ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
    if (tracked(descriptor)) UNKNOWN("pwritev");
    return REAL(pwritev)(descriptor, parts, count, offset);
}
int renameat(int one, const char *from, int two, const char *to) {
    if (inside(to)) UNKNOWN("renameat");
    return REAL(renameat)(one, from, two, to);
}
int linkat(int one, const char *from, int two, const char *to, int flags) {
    if (inside(to)) UNKNOWN("linkat");
    return REAL(linkat)(one, from, two, to, flags);
}
int fallocate(int descriptor, int mode, off_t offset, off_t length) {
    if (tracked(descriptor)) UNKNOWN("fallocate");
    return REAL(fallocate)(descriptor, mode, offset, length);
}
int posix_fallocate(int descriptor, off_t offset, off_t length) {
    if (tracked(descriptor)) UNKNOWN("posix_fallocate");
    return REAL(posix_fallocate)(descriptor, offset, length);
}
int truncate(const char *path, off_t length) {
    if (inside(path)) UNKNOWN("truncate");
    return REAL(truncate)(path, length);
}
