/* A head for Vector's body board that shares no code with Kennel: it knows the bytes of the serial line and nothing else.
 *
 *   head DEVICE
 *
 * DEVICE is a tty, or a Unix socket. It begins with a mode change, as the maker's programs do. It asks for the version, also byte by byte, sends
 * what is not right, comes back after a frame that it left in the middle, reads data frames, answers each of them, turns each motor for a while and
 * prints what came back:
 *
 *   running                                   the application still runs after the mode change
 *   version <the last 16 bytes as text>
 *   refused <frames that were not right>
 *   back                                      after each frame that was left in the middle
 *   frames <good> bad <bad>                   before anything moves
 *   battery <volts>
 *   flags <battery flags>
 *   range <mm>
 *   mics <samples of a frame>
 *   motor <index> <counts forth> <counts back>
 *   shutdown
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { MODE = 0x6D64, VERSION = 0x7276, DATA = 0x6466, SHUTDOWN = 0x6473, ACK = 0x6B61, BLOCK = 0x6675 };
enum { UP_DATA = 768, UP_VERSION = 40, DOWN_DATA = 64, DOWN_BLOCK = 1028, HEADER = 8, CRC = 4 };

static int fd;
static uint8_t buf[8192];
static size_t have;
static unsigned good, bad;

static void die(const char *what) {
	fprintf(stderr, "head: %s: %s\n", what, errno ? strerror(errno) : "gave up");
	exit(1);
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t crc32(const uint8_t *p, size_t n) {
	uint32_t c = 0xFFFFFFFFu;
	while (n--) {
		c ^= *p++;
		for (int i = 0; i < 8; i++) c = (c >> 1) ^ (0xEDB88320u & -(c & 1));
	}
	return c; /* no final xor */
}

static void put16(uint8_t *p, unsigned v) { p[0] = (uint8_t)v; p[1] = (uint8_t)(v >> 8); }
static void put32(uint8_t *p, uint32_t v) { put16(p, v & 0xFFFF); put16(p + 2, v >> 16); }
static unsigned get16(const uint8_t *p) { return p[0] | (unsigned)p[1] << 8; }
static uint32_t get32(const uint8_t *p) { return get16(p) | (uint32_t)get16(p + 2) << 16; }

static void put(const uint8_t *f, size_t n) {
	for (size_t at = 0; at < n;) {
		ssize_t k = write(fd, f + at, n - at);
		if (k < 0 && errno != EINTR && errno != EAGAIN) die("write");
		if (k > 0) at += (size_t)k;
	}
}

static size_t make(uint8_t *f, unsigned type, const uint8_t *payload, size_t n) {
	put32(f, 0x423248AAu); /* head to body */
	put16(f + 4, type);
	put16(f + 6, (unsigned)n);
	if (n) memcpy(f + HEADER, payload, n);
	put32(f + HEADER + n, crc32(f + HEADER, n));
	return n + HEADER + CRC;
}

static void say(unsigned type, const uint8_t *payload, size_t n) {
	uint8_t f[HEADER + DOWN_DATA + CRC];
	put(f, make(f, type, payload, n));
}

static void drive(int motor, int duty) {
	static uint32_t seq;
	uint8_t p[DOWN_DATA] = {0};
	put32(p, ++seq);
	put16(p + 8 + 2 * motor, (unsigned)(uint16_t)(int16_t)duty);
	say(DATA, p, sizeof p);
}

static size_t size_of(unsigned type) {
	switch (type) {
	case DATA: return UP_DATA;
	case VERSION: return UP_VERSION;
	case ACK: case 0x6662: return 4;
	case 0x6364: return 32;
	}
	return 0;
}

static void skip(size_t n) {
	have -= n;
	memmove(buf, buf + n, have);
}

/* wait waits for a frame of the type and copies its payload; frames of other types are passed over. It returns 0 if none comes in time. */
static int wait(unsigned type, uint8_t *payload, double until) {
	for (;;) {
		while (have >= HEADER) {
			unsigned t = get16(buf + 4);
			size_t n = size_of(t);
			if (get32(buf) != 0x483242AAu || !n || get16(buf + 6) != n) { skip(1); continue; }
			if (have < HEADER + n + CRC) break;
			if (crc32(buf + HEADER, n) != get32(buf + HEADER + n)) { bad++; skip(1); continue; }
			good++;
			if (t == type) memcpy(payload, buf + HEADER, n);
			skip(HEADER + n + CRC);
			if (t == type) return 1;
		}
		double left = until - now();
		struct pollfd p = {fd, POLLIN, 0};
		errno = 0;
		if (left <= 0) return 0;
		if (poll(&p, 1, (int)(left * 1000) + 1) < 0 && errno != EINTR) die("poll");
		if (!p.revents) continue;
		ssize_t k = read(fd, buf + have, sizeof buf - have);
		if (k < 0 && errno != EINTR && errno != EAGAIN) die("read");
		if (k > 0) have += (size_t)k;
	}
}

static void hear(unsigned type, uint8_t *payload, double until) {
	if (!wait(type, payload, until)) die("no frame of the type wanted");
}

/* ask sends a frame, in pieces of that size, until it is answered: where the machine lets this program wait, the line overflows. */
static void ask(const uint8_t *f, size_t n, size_t piece, unsigned type, uint8_t *payload) {
	for (int i = 0; i < 20; i++) {
		for (size_t at = 0; at < n; at += piece) put(f + at, n - at < piece ? n - at : piece);
		if (wait(type, payload, now() + 0.5)) return;
	}
	die("no answer");
}

static int32_t position(const uint8_t *data, int motor) { return (int32_t)get32(data + 8 + 12 * motor); }

/* turn drives one motor for some frames, answers each, and returns how far it went. */
static int32_t turn(int motor, int duty, int frames) {
	uint8_t d[UP_DATA];
	hear(DATA, d, now() + 10);
	int32_t from = position(d, motor);
	for (int i = 0; i < frames; i++) {
		drive(motor, duty);
		hear(DATA, d, now() + 10);
	}
	for (int i = 0; i < 15; i++) { /* and let it come to rest */
		drive(motor, 0);
		hear(DATA, d, now() + 10);
	}
	return position(d, motor) - from;
}

static void pick_up(const char *device) {
	struct termios t;
	struct stat st;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	have = 0;
	if (stat(device, &st)) die(device);
	if (S_ISSOCK(st.st_mode)) {
		if (strlen(device) >= sizeof at.sun_path) die("too long a name");
		strcpy(at.sun_path, device);
		if ((fd = socket(AF_UNIX, SOCK_STREAM, 0)) < 0 || connect(fd, (struct sockaddr *)&at, sizeof at)) die(device);
		return;
	}
	if ((fd = open(device, O_RDWR | O_NOCTTY)) < 0) die(device);
	if (tcgetattr(fd, &t)) die("not a tty");
	cfmakeraw(&t);
	if (tcsetattr(fd, TCSANOW, &t) || tcflush(fd, TCIOFLUSH)) die("raw mode");
}

/* refuse sends what is not right, and wants a NAK for it. */
static void refuse(const uint8_t *f, size_t n) {
	uint8_t a[4];
	ask(f, n, n, ACK, a);
	if ((int32_t)get32(a) > 0) die("it took what is not right");
}

int main(int argc, char **argv) {
	uint8_t v[UP_VERSION], d[UP_DATA], f[HEADER + DOWN_BLOCK + CRC], p[DOWN_BLOCK] = {0};
	size_t n;
	if (argc != 2) die("usage: head DEVICE");
	pick_up(argv[1]);

	n = make(f, MODE, NULL, 0);
	ask(f, n, n, ACK, d);
	hear(DATA, d, now() + 10);
	printf("running\n");

	n = make(f, VERSION, NULL, 0);
	ask(f, n, 1, VERSION, v);
	printf("version %.16s\n", (char *)v + UP_VERSION - 16);

	n = make(f, DATA, p, DOWN_DATA);
	f[n - 1] ^= 1; /* checksum */
	refuse(f, n);
	refuse(f, make(f, DATA, p, DOWN_DATA - 4)); /* size */
	refuse(f, make(f, 0x4141, p, 4));           /* type */
	refuse(f, make(f, BLOCK, p, DOWN_BLOCK));   /* nothing is erased; it is in its boot-loader now */
	n = make(f, MODE, NULL, 0);
	ask(f, n, n, ACK, d);
	printf("refused 4\n");

	/* The rest of these never comes, and what follows is much shorter than what they claim. */
	for (int i = 0; i < 2; i++) {
		put(f, i ? make(f, BLOCK, p, DOWN_BLOCK) / 2 : make(f, DATA, p, DOWN_DATA) / 2);
		close(fd);
		pick_up(argv[1]);
		n = make(f, VERSION, NULL, 0);
		ask(f, n, n, VERSION, v);
		printf("back\n");
	}
	good = bad = 0;

	uint32_t last = 0, gaps = 0;
	for (int i = 0; i < 100; i++) {
		hear(DATA, d, now() + 10);
		drive(0, 0);
		if (i && get32(d) != last + 1) gaps++;
		last = get32(d);
	}
	printf("frames %u bad %u gaps %u\n", good, bad, gaps);
	printf("battery %.2f\n", (int16_t)get16(d + 64) * 0.00136719);
	printf("flags %u\n", get16(d + 70));
	printf("range %u\n", get16(d + 76));
	printf("mics %d\n", (UP_DATA - 128) / 2);

	for (int m = 0; m < 4; m++) {
		/* The head stands low and the lift down: both go up first. */
		int32_t forth = turn(m, 12000, 40), back = turn(m, -12000, 20);
		printf("motor %d %d %d\n", m, forth, back);
	}
	say(SHUTDOWN, NULL, 0);
	printf("shutdown\n");
	fflush(stdout);
	/* The board cuts the power when it has read that; a head that closes the line first would lose it. */
	if (isatty(fd)) tcdrain(fd);
	return 0;
}
