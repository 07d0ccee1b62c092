/* Sees every input and output step of a process below one folder, from Python and from SQLite alike.

   Preloaded, it stands between the program and libc. `shim_arm` names the folder and what to do at a step:
   count only, die there, do half of a write and die, fail once or from there on, write short; and it can record
   every step with its data, for power cuts to be played back later. What a map of memory does is not seen:
   only SQLite's -shm is written that way, and it need not survive anything. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { CREATE, CLEAR, WRITE, TRUNCATE, ALLOCATE, SYNC, RENAME, LINK, UNLINK, MKDIR, RMDIR, OPEN, READ, MARK,
            EDIT };
enum action { COUNT, DIE, TEAR, FAIL, SHORTEN };
enum { GO = 0, TORN = -1, SHORT = -2 };

struct board { long steps, hits; char last[480]; };  /* shared with the process that forked this one */

static struct board *board;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static volatile int armed;
static char folder[4096], only[256];
static size_t folder_size;
static int action, error_number, sticky, log_fd = -1;
static long at;
static unsigned mask;

__attribute__((constructor)) static void begin(void) {
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

struct board *shim_board(void) { return board; }

void shim_disarm(void) { armed = 0; }

void shim_arm(const char *where, unsigned kinds, const char *name, int what, long step, int number, int from_there_on,
              const char *log) {
    armed = 0;
    pthread_mutex_init(&turn, NULL);  /* a fork may have copied it locked */
    snprintf(folder, sizeof folder, "%s", where);
    folder_size = strlen(folder);
    snprintf(only, sizeof only, "%s", name);
    mask = kinds, action = what, at = step, error_number = number, sticky = from_there_on;
    board->steps = board->hits = 0, board->last[0] = 0;
    if (log_fd >= 0) syscall(SYS_close, log_fd);
    log_fd = *log ? (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    armed = 1;
}

/* ------------------------------------------------------------------ where a call goes */

static int below(const char *path) {
    return !strncmp(path, folder, folder_size) && (path[folder_size] == '/' || !path[folder_size]);
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, path, 4095);
    if (size < 0) return 0;
    path[size] = 0;
    return below(path) && !(size > 10 && !strcmp(path + size - 10, " (deleted)"));
}

static int name_of(int dir, const char *name, char *path) {
    if (!name) return 0;
    if (*name == '/') snprintf(path, 4096, "%s", name);
    else {
        char base[4096];
        if (dir == AT_FDCWD) { if (syscall(SYS_getcwd, base, sizeof base) < 0) return 0; }
        else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
            ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, base, 4095);
            if (size < 0) return 0;
            base[size] = 0;
        }
        if ((size_t)snprintf(path, 4096, "%.3000s/%.1000s", base, name) >= 4096) return 0;
    }
    return below(path);
}

/* ------------------------------------------------------------------ what is done at a step */

static void all_of(const void *data, size_t size) {
    while (size) {
        ssize_t done = syscall(SYS_write, log_fd, data, size);
        if (done <= 0) abort();  /* a log with holes would prove nothing */
        data = (const char *)data + done, size -= done;
    }
}

static void record(int kind, uint64_t inode, int64_t offset, const char *one, const char *two, const void *data,
                   size_t size) {
    if (log_fd < 0) return;
    struct { uint32_t kind, one, two, spare; uint64_t inode; int64_t offset; uint64_t size; } head = {
        kind, strlen(one), strlen(two), 0, inode, offset, size};
    all_of(&head, sizeof head), all_of(one, head.one), all_of(two, head.two), all_of(data, size);
}

void shim_mark(const char *text) {
    if (!armed) return;
    pthread_mutex_lock(&turn);
    record(MARK, 0, 0, text, "", "", 0);
    pthread_mutex_unlock(&turn);
}

static uint64_t inode_of(int fd) {
    struct stat about;
    return fstat(fd, &about) ? 0 : about.st_ino;
}

static uint64_t inode_at(const char *path) {
    struct stat about;
    return fstatat(AT_FDCWD, path, &about, AT_SYMLINK_NOFOLLOW) ? 0 : about.st_ino;
}

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* GO, TORN, SHORT, or the error to fail with; called with `turn` held. */
static int step(int kind, const char *path) {
    if (!(mask & 1u << kind) || (*only && !strstr(path + folder_size, only))) return GO;
    long now = ++board->steps;
    if (now != at && !(sticky && now > at && at > 0)) return GO;
    if (action == COUNT) return GO;
    if (!board->hits++) snprintf(board->last, sizeof board->last, "%d %.470s", kind, path + folder_size);
    if (action == DIE || (action == TEAR && kind != WRITE)) die();
    return action == TEAR ? TORN : action == SHORTEN ? (kind == WRITE ? SHORT : GO) : error_number;
}

#define HELD(expression) ({ pthread_mutex_lock(&turn); __typeof__(expression) held = (expression); int number = errno; \
    pthread_mutex_unlock(&turn); errno = number; held; })
#define REFUSED(kind, path) ({ int refused = step(kind, path); if (refused > 0) errno = refused; refused > 0; })

/* ------------------------------------------------------------------ opening */

static int opened(int dir, const char *name, int flags, mode_t mode, const char *path) {
    uint64_t before = inode_at(path);
    int kind = !before && flags & O_CREAT ? CREATE : flags & O_TRUNC ? CLEAR : flags & O_ACCMODE ? EDIT : OPEN;
    if (REFUSED(kind, path)) return -1;
    int fd = (int)syscall(SYS_openat, dir, name, flags, mode);
    if (fd >= 0) record(kind, inode_of(fd), 0, path + folder_size, "", "", 0);
    return fd;
}

static int open_any(int dir, const char *name, int flags, mode_t mode) {
    char path[4096];
    if (!armed || !name_of(dir, name, path)) return (int)syscall(SYS_openat, dir, name, flags, mode);
    return HELD(opened(dir, name, flags, mode, path));
}

static mode_t mode_in(int flags, va_list list) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; }
#define MODE() ({ va_list list; va_start(list, flags); mode_t mode = mode_in(flags, list); va_end(list); mode; })
int open(const char *name, int flags, ...) { return open_any(AT_FDCWD, name, flags, MODE()); }
int openat(int dir, const char *name, int flags, ...) { return open_any(dir, name, flags, MODE()); }
int open64(const char *, int, ...) __attribute__((alias("open")));  /* the same where a file offset has 64 bits */
int openat64(int, const char *, int, ...) __attribute__((alias("openat")));
int __open_2(const char *name, int flags) { return open_any(AT_FDCWD, name, flags, 0); }
int __open64_2(const char *name, int flags) { return open_any(AT_FDCWD, name, flags, 0); }
int __openat_2(int dir, const char *name, int flags) { return open_any(dir, name, flags, 0); }
int __openat64_2(int dir, const char *name, int flags) { return open_any(dir, name, flags, 0); }
int creat(const char *name, mode_t mode) { return open_any(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *name, mode_t mode) { return open_any(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* ------------------------------------------------------------------ reading and writing; -1: where the file stands */

static ssize_t raw_write(int fd, const void *data, size_t size, off_t offset) {
    return offset < 0 ? syscall(SYS_write, fd, data, size) : syscall(SYS_pwrite64, fd, data, size, offset);
}

static ssize_t written(int fd, const void *data, size_t size, off_t offset, const char *path) {
    int what = step(WRITE, path);
    if (what > 0) { errno = what; return -1; }
    struct stat about;
    off_t place = offset >= 0 ? offset : lseek(fd, 0, SEEK_CUR);
    if (offset < 0 && fcntl(fd, F_GETFL) & O_APPEND && !fstat(fd, &about)) place = about.st_size;
    if (what != GO) size = (size + 1) / 2;
    ssize_t done = raw_write(fd, data, size, offset);
    if (what == TORN) die();
    if (done > 0) record(WRITE, inode_of(fd), place, path + folder_size, "", data, done);
    return done;
}

static ssize_t write_any(int fd, const void *data, size_t size, off_t offset) {
    char path[4096];
    if (!armed || !path_of(fd, path)) return raw_write(fd, data, size, offset);
    return HELD(written(fd, data, size, offset, path));
}

static ssize_t write_all_of(int fd, const struct iovec *parts, int n, off_t offset) {
    size_t size = 0, put = 0;
    for (int i = 0; i < n; i++) size += parts[i].iov_len;
    char *data = malloc(size + 1);
    for (int i = 0; i < n; put += parts[i++].iov_len) memcpy(data + put, parts[i].iov_base, parts[i].iov_len);
    ssize_t done = write_any(fd, data, size, offset);
    free(data);
    return done;
}

ssize_t write(int fd, const void *data, size_t size) { return write_any(fd, data, size, -1); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) { return write_any(fd, data, size, offset); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) { return write_any(fd, data, size, offset); }
ssize_t writev(int fd, const struct iovec *parts, int n) { return write_all_of(fd, parts, n, -1); }
ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t offset) { return write_all_of(fd, parts, n, offset); }
ssize_t pwritev64(int, const struct iovec *, int, off64_t) __attribute__((alias("pwritev")));

static ssize_t read_any(int fd, void *data, size_t size, off_t offset) {
    char path[4096];
    if (armed && mask & 1u << READ && path_of(fd, path) && HELD(REFUSED(READ, path))) return -1;
    return offset < 0 ? syscall(SYS_read, fd, data, size) : syscall(SYS_pread64, fd, data, size, offset);
}

ssize_t read(int fd, void *data, size_t size) { return read_any(fd, data, size, -1); }
ssize_t pread(int fd, void *data, size_t size, off_t offset) { return read_any(fd, data, size, offset); }
ssize_t pread64(int fd, void *data, size_t size, off64_t offset) { return read_any(fd, data, size, offset); }

/* Copies inside the kernel would not show their data: callers fall back to reading and writing. */
ssize_t sendfile(int out, int in, off_t *offset, size_t size) {
    char path[4096];
    if (armed && path_of(out, path)) { errno = ENOTSOCK; return -1; }
    return syscall(SYS_sendfile, out, in, offset, size);
}
ssize_t sendfile64(int out, int in, off64_t *offset, size_t size) { return sendfile(out, in, offset, size); }
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags) {
    char path[4096];
    if (armed && path_of(out, path)) { errno = EXDEV; return -1; }
    return syscall(SYS_copy_file_range, in, from, out, to, size, flags);
}

/* ------------------------------------------------------------------ sizes and syncs */

static int sized(int kind, int fd, off_t size, const char *path, int how, off_t offset) {
    if (REFUSED(kind, path)) return -1;
    int failed = kind == TRUNCATE ? (int)syscall(SYS_ftruncate, fd, size)
                                  : (int)syscall(SYS_fallocate, fd, how, offset, size);
    if (!failed) record(kind, inode_of(fd), kind == TRUNCATE ? size : offset + size, path + folder_size, "", "", 0);
    return failed;
}

int ftruncate(int fd, off_t size) {
    char path[4096];
    if (!armed || !path_of(fd, path)) return (int)syscall(SYS_ftruncate, fd, size);
    return HELD(sized(TRUNCATE, fd, size, path, 0, 0));
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int fallocate(int fd, int how, off_t offset, off_t size) {
    char path[4096];
    if (!armed || !path_of(fd, path)) return (int)syscall(SYS_fallocate, fd, how, offset, size);
    if (how) { errno = EOPNOTSUPP; return -1; }  /* holes and the like are not recorded */
    return HELD(sized(ALLOCATE, fd, size, path, how, offset));
}
int fallocate64(int fd, int how, off64_t offset, off64_t size) { return fallocate(fd, how, offset, size); }
int posix_fallocate(int fd, off_t offset, off_t size) { return fallocate(fd, 0, offset, size) ? errno : 0; }
int posix_fallocate64(int fd, off64_t offset, off64_t size) { return posix_fallocate(fd, offset, size); }

static int synced(int fd, const char *path, long number) {
    if (REFUSED(SYNC, path)) return -1;
    int failed = (int)syscall(number, fd);
    if (!failed) record(SYNC, inode_of(fd), 0, path + folder_size, "", "", 0);
    return failed;
}
static int sync_any(int fd, long number) {
    char path[4096];
    if (!armed || !path_of(fd, path)) return (int)syscall(number, fd);
    return HELD(synced(fd, path, number));
}
int fsync(int fd) { return sync_any(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_any(fd, SYS_fdatasync); }

/* ------------------------------------------------------------------ names */

static int raw_name(int kind, int dir, const char *name, int dir2, const char *name2, unsigned how) {
    return (int)(kind == RENAME  ? syscall(SYS_renameat2, dir, name, dir2, name2, how)
                 : kind == LINK  ? syscall(SYS_linkat, dir, name, dir2, name2, how)
                 : kind == MKDIR ? syscall(SYS_mkdirat, dir, name, how)
                                 : syscall(SYS_unlinkat, dir, name, how));
}

static int name_any(int kind, int dir, const char *name, int dir2, const char *name2, unsigned how) {
    char one[4096], two[4096] = "";
    int first = armed && name_of(dir, name, one), second = armed && name2 && name_of(dir2, name2, two);
    if (!first && !second) return raw_name(kind, dir, name, dir2, name2, how);
    pthread_mutex_lock(&turn);
    int failed = REFUSED(kind, first ? one : two) ? -1 : 0;
    if (!failed) {
        uint64_t before = inode_at(one);
        failed = raw_name(kind, dir, name, dir2, name2, how);
        const char *from = first ? one + folder_size : "\1", *to = second ? two + folder_size : *two ? "\1" : "";
        if (!failed) record(kind, before ? before : inode_at(one), 0, from, to, "", 0);  /* \1: somewhere else */
    }
    int number = errno;
    pthread_mutex_unlock(&turn);
    errno = number;
    return failed;
}

int rename(const char *one, const char *two) { return name_any(RENAME, AT_FDCWD, one, AT_FDCWD, two, 0); }
int renameat(int dir, const char *one, int dir2, const char *two) { return name_any(RENAME, dir, one, dir2, two, 0); }
int renameat2(int dir, const char *one, int dir2, const char *two, unsigned how) {
    return name_any(RENAME, dir, one, dir2, two, how);
}
int link(const char *one, const char *two) { return name_any(LINK, AT_FDCWD, one, AT_FDCWD, two, 0); }
int linkat(int dir, const char *one, int to, const char *two, int how) {
    return name_any(LINK, dir, one, to, two, how);
}
int unlink(const char *one) { return name_any(UNLINK, AT_FDCWD, one, 0, NULL, 0); }
int unlinkat(int dir, const char *one, int how) {
    return name_any(how & AT_REMOVEDIR ? RMDIR : UNLINK, dir, one, 0, NULL, how);
}
int rmdir(const char *one) { return name_any(RMDIR, AT_FDCWD, one, 0, NULL, AT_REMOVEDIR); }
int mkdir(const char *one, mode_t mode) { return name_any(MKDIR, AT_FDCWD, one, 0, NULL, mode); }
int mkdirat(int dir, const char *one, mode_t mode) { return name_any(MKDIR, dir, one, 0, NULL, mode); }
