/* A system that turns against one program, while it runs and as its tests say.
 *
 * Loaded with LD_PRELOAD. HOSTILE_SWITCHES names a folder; a file in it is a switch:
 *   read_only   every write beneath HOSTILE_DISK fails as on a disk that went read-only under
 *               files that are open: EROFS, for open files and for new ones
 *   clock_s     so many seconds are added to what the wall clock says; the monotonic clock is
 *               left alone, as it is when somebody sets the time
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int switch_path(const char *name, char *out, size_t size)
{
    const char *folder = getenv("HOSTILE_SWITCHES");
    return folder != NULL && snprintf(out, size, "%s/%s", folder, name) < (int)size;
}

static int is_read_only(const char *path)
{
    char file[4096];
    const char *disk = getenv("HOSTILE_DISK");
    if (disk == NULL || path == NULL || strncmp(path, disk, strlen(disk)) != 0)
        return 0;
    return switch_path("read_only", file, sizeof file) && syscall(SYS_access, file, F_OK) == 0;
}

static int is_read_only_handle(int handle)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return is_read_only(path);
}

static int refused(void)
{
    errno = EROFS;
    return -1;
}

ssize_t write(int fd, const void *data, size_t size)
{
    return is_read_only_handle(fd) ? refused() : NEXT(write)(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    return is_read_only_handle(fd) ? refused() : NEXT(pwrite)(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    return is_read_only_handle(fd) ? refused() : NEXT(pwrite64)(fd, data, size, at);
}

int ftruncate(int fd, off_t size)
{
    return is_read_only_handle(fd) ? refused() : NEXT(ftruncate)(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    return is_read_only_handle(fd) ? refused() : NEXT(ftruncate64)(fd, size);
}

int mkdir(const char *path, mode_t mode)
{
    return is_read_only(path) ? refused() : NEXT(mkdir)(path, mode);
}

int unlink(const char *path)
{
    return is_read_only(path) ? refused() : NEXT(unlink)(path);
}

int rename(const char *old, const char *new)
{
    return is_read_only(new) ? refused() : NEXT(rename)(old, new);
}

#define OPENS(name)                                                        \
    int name(const char *path, int flags, ...)                             \
    {                                                                      \
        va_list rest;                                                      \
        va_start(rest, flags);                                             \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, int) : 0; \
        va_end(rest);                                                      \
        int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT); \
        if (writes && is_read_only(path))                                  \
            return refused();                                              \
        return NEXT(name)(path, flags, mode);                              \
    }
OPENS(open)
OPENS(open64)

static long offset_s(void)
{
    char file[4096], text[32] = "";
    if (!switch_path("clock_s", file, sizeof file))
        return 0;
    int handle = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
    if (handle < 0)
        return 0;
    ssize_t length = read(handle, text, sizeof text - 1);
    close(handle);
    return length > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += offset_s();
    return result;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (out != NULL)
        *out = found.tv_sec;
    return found.tv_sec;
}
