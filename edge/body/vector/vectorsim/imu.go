package vectorsim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/body/rawfd"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/vectordriver"
	"kennel/infra/sockpath"

	"golang.org/x/sys/unix"
)

// IMUConfig describes a chip. The zero value is a good one of its kind.
type IMUConfig struct {
	Seed                  uint64
	AccelNoise, GyroNoise float64    // m/s2 and rad/s, standard deviations; 0: as a BMI160 has at 200 Hz; negative: none
	AccelBias, GyroBias   [3]float64 // m/s2 and rad/s; a gyro without one has some by its seed
}

// Own defaults of a chip, by the data sheet's noise density, and a third of the offset that it allows a gyro.
const (
	defaultAccelNoise = 0.016
	defaultGyroNoise  = 0.0012
	mostGyroBias      = 0.017 // rad/s
)

// IMUFault is a fault of a chip.
type IMUFault uint8

// The faults.
const (
	IMUSound   IMUFault = iota
	IMUZeros            // its line is low
	IMUOnes             // its line is high: nothing is there
	IMUWrongID          // another chip
	IMUStuck            // it no longer measures, its clock runs
	IMUStopped          // its clock has stopped
	IMUSilent           // no transfer ends
	IMUForgets          // it loses its settings, as in a brown-out, and measures on
)

// Registers of a chip after a reset, by its data sheet.
const (
	resetConf     = 0x28
	chipBoot      = 10 * time.Millisecond // deaf
	accelStart    = 4 * time.Millisecond
	gyroStart     = 80 * time.Millisecond
	wrongID       = 0x0f // any other
	chipRegisters = 0x80
)

// IMU is the chip of the inertial sensors in the head, at the other end of its SPI bus (package imu). It samples feel at its own rate, by
// its own clock; a sample that is not read in time is lost. Its methods are safe for concurrent use.
type IMU struct {
	mu    sync.Mutex
	cfg   IMUConfig
	feel  func() (accel, gyro [3]float64)
	rng   *rand.Rand
	fault IMUFault

	regs       [chipRegisters]byte
	spi        bool          // it has heard that its bus is SPI
	on         time.Duration // when its clock was 0
	deaf       time.Duration // until then
	accelAt    time.Duration // when that part runs; 0: it does not
	gyroAt     time.Duration
	accelSlot  uint32
	gyroSlot   uint32
	stoppedAt  time.Duration // while its clock is stopped
	accel      [3]int16
	gyro       [3]int16
	transfers  uint64
	gyroOffset [3]float64
}

// NewIMU returns a chip without power. feel returns acceleration and turning in the chip's axes, m/s2 and rad/s: Board.Inertial.
func NewIMU(cfg IMUConfig, feel func() (accel, gyro [3]float64)) *IMU {
	c := &IMU{cfg: cfg, feel: feel, rng: rand.New(rand.NewPCG(cfg.Seed, 0x696d75)), gyroOffset: cfg.GyroBias}
	if c.cfg.AccelNoise == 0 {
		c.cfg.AccelNoise = defaultAccelNoise
	}
	if c.cfg.GyroNoise == 0 {
		c.cfg.GyroNoise = defaultGyroNoise
	}
	if cfg.GyroBias == [3]float64{} {
		for i := range c.gyroOffset {
			c.gyroOffset[i] = float64(mostGyroBias * (2*c.rng.Float64() - 1))
		}
	}
	return c
}

// PowerOn starts or restarts the chip at now.
func (c *IMU) PowerOn(now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset(now)
}

// reset is power coming on, and its command. The lock is held.
func (c *IMU) reset(now time.Duration) {
	c.regs = [chipRegisters]byte{}
	c.settings()
	c.spi, c.on, c.deaf = false, now, now+chipBoot
	c.accelAt, c.gyroAt, c.accelSlot, c.gyroSlot = 0, 0, 0, 0
	c.accel, c.gyro = [3]int16{}, [3]int16{}
}

// settings restores the settings after a reset. The lock is held.
func (c *IMU) settings() {
	c.regs[imu.RegAccConf], c.regs[imu.RegAccRange] = resetConf, byte(imu.Accel2G)
	c.regs[imu.RegGyrConf], c.regs[imu.RegGyrRange] = resetConf, byte(imu.Gyro2000)
}

// SetFault breaks the chip at now, or mends it.
func (c *IMU) SetFault(f IMUFault, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f == IMUForgets {
		c.settings()
		f = IMUSound
	}
	c.fault, c.stoppedAt = f, now
}

// Bend changes how much the chip is off: the biases of cfg become its own.
func (c *IMU) Bend(cfg IMUConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.AccelBias, c.gyroOffset = cfg.AccelBias, cfg.GyroBias
}

// Transfers returns how many there were.
func (c *IMU) Transfers() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.transfers
}

// Transfer runs one transfer at now: it fills rx with the chip's bytes while tx comes in. False: the transfer does not end.
func (c *IMU) Transfer(now time.Duration, tx, rx []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.transfers++
	line := byte(0xff) // the line is not driven
	if c.fault == IMUZeros {
		line = 0
	}
	for i := range rx {
		rx[i] = line
	}
	switch {
	case c.fault == IMUSilent:
		return false
	case c.fault == IMUZeros, c.fault == IMUOnes, len(tx) < 2, now < c.deaf:
		return true
	case !c.spi: // the first transfer switches the chip to SPI; a write in it is lost
		c.spi = true
		return true
	}
	register := tx[0] &^ imu.ReadBit
	if tx[0]&imu.ReadBit == 0 {
		c.write(now, register, tx[1])
		return true
	}
	c.measure(now)
	for i := 1; i < len(rx); i++ {
		rx[i] = c.regs[register]
		register = (register + 1) % chipRegisters
	}
	return true
}

func (c *IMU) write(now time.Duration, register, value byte) {
	switch register {
	case imu.RegAccConf, imu.RegAccRange, imu.RegGyrConf, imu.RegGyrRange:
		c.regs[register] = value
	case imu.RegCommand:
		switch value {
		case imu.CommandReset:
			c.reset(now)
		case imu.CommandAccNormal:
			c.accelAt = now + accelStart
		case imu.CommandGyrNormal:
			c.gyroAt = now + gyroStart
		}
	}
}

// measure brings the registers up to now.
func (c *IMU) measure(now time.Duration) {
	c.regs[imu.RegChipID] = imu.ChipID
	if c.fault == IMUWrongID {
		c.regs[imu.RegChipID] = wrongID
	}
	if c.fault == IMUStopped {
		now = c.stoppedAt
	}
	power := byte(0)
	accelOn, gyroOn := c.accelAt > 0 && now >= c.accelAt, c.gyroAt > 0 && now >= c.gyroAt
	if accelOn {
		power |= imu.PowerAccNormal
	}
	if gyroOn {
		power |= imu.PowerGyrNormal
	}
	c.regs[imu.RegPower] = power
	t := imu.TimeRaw(now - c.on)
	accelNew := accelOn && due(t, c.regs[imu.RegAccConf], &c.accelSlot)
	gyroNew := gyroOn && due(t, c.regs[imu.RegGyrConf], &c.gyroSlot)
	if (accelNew || gyroNew) && c.fault != IMUStuck {
		a, g := c.feel()
		if accelNew {
			c.sample(&c.accel, &a, &c.cfg.AccelBias, c.cfg.AccelNoise, imu.AccelRange(c.regs[imu.RegAccRange]).PerCount())
		}
		if gyroNew {
			c.sample(&c.gyro, &g, &c.gyroOffset, c.cfg.GyroNoise, imu.GyroRange(c.regs[imu.RegGyrRange]).PerCount())
		}
	}
	b := imu.Block{GyroRaw: c.gyro, AccelRaw: c.accel, TimeRaw: t}
	b.Append(c.regs[imu.RegData:imu.RegData])
}

// due reports whether a part that is configured so has a new sample at t.
func due(t uint32, conf byte, slot *uint32) bool {
	ticks := imu.Rate(conf & 0x0f).Ticks()
	if ticks == 0 || t/ticks == *slot {
		return false
	}
	*slot = t / ticks
	return true
}

func (c *IMU) sample(raw *[3]int16, v, bias *[3]float64, noise, perCount float64) {
	if perCount == 0 { // a range that there is not
		return
	}
	for i := range raw {
		x := v[i] + bias[i]
		if noise > 0 {
			x += float64(noise * c.rng.NormFloat64())
		}
		raw[i] = int16(min(max(math.Round(x/perCount), math.MinInt16), math.MaxInt16))
	}
}

// errIMUSilent is the error of a transfer that does not end, on a bus in the board's own time.
var errIMUSilent = fmt.Errorf("vectorsim: %w", imu.ErrNoAnswer)

// imuBus is a chip without a wire, in its board's time.
type imuBus struct {
	chip  *IMU
	clock func() time.Duration
}

func (b imuBus) Transfer(tx, rx []byte) error {
	if !b.chip.Transfer(b.clock(), tx, rx) {
		return errIMUSilent
	}
	return nil
}

func (imuBus) Close() error { return nil }

// Sensors returns the reader of a chip in the board's time, as a driver takes it: each call of Newest first does the due work. The chip has
// no power yet.
func (s *Stepped) Sensors(c *IMU, cfg imu.Config) (vectordriver.Sensors, error) {
	cfg.Device, cfg.Now, cfg.Open = "simulated", s.Now, func() (imu.Bus, error) { return imuBus{c, s.Now}, nil }
	r, err := imu.New(cfg, slog.New(slog.DiscardHandler))
	return &steppedSensors{s: s, r: r}, err
}

type steppedSensors struct {
	s    *Stepped
	r    *imu.Reader
	next time.Duration
}

func (x *steppedSensors) Newest(in *body.Inertial) bool {
	if x.s.Time >= x.next {
		x.next = x.r.Step(x.s.Time)
	}
	return x.r.Newest(in)
}

// ServeIMU lets the chip answer on a Unix socket at path until ctx ends: a datagram for each transfer and one back. It starts the chip, and takes
// the place of a socket that an earlier one left there.
func ServeIMU(ctx context.Context, path string, c *IMU) error {
	c.PowerOn(monoclock.Now())
	return serveChip(ctx, path, "inertial sensors", c.serve)
}

// serveChip lets a chip on a bus listen on a Unix socket at path until ctx ends. serve serves one connection.
func serveChip(ctx context.Context, path, what string, serve func(*net.UnixConn)) error {
	ln, err := listenChip(path)
	if err != nil {
		return fmt.Errorf("vectorsim: %s: %w", what, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })() // nothing waits in it
	defer func() {
		_ = ln.Close()
		_ = os.Remove(path) // one that is left is replaced
	}()
	defer cancel()
	for {
		conn, err := ln.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("vectorsim: %s: %w", what, err)
		}
		wg.Go(func() {
			defer conn.Close() // nothing waits in it that counts
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			serve(conn)
		})
	}
}

// listenChip listens at a path of any length: an address takes 108 bytes, so it is named within its folder.
func listenChip(path string) (ln *net.UnixListener, err error) {
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSocket == 0 {
		return nil, fmt.Errorf("%s exists and is not a socket, want an unused name", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	err = sockpath.To(path, func(short string) (err error) {
		if ln, err = net.ListenUnix("unixpacket", &net.UnixAddr{Name: short, Net: "unixpacket"}); err != nil {
			return fmt.Errorf("listen on %s: %w", path, errors.Unwrap(err)) // not by the address that it was tried at
		}
		ln.SetUnlinkOnClose(false) // by that name it is gone
		return nil
	})
	return ln, err
}

// serve answers one bus until it ends. A transfer that does not end is not answered.
func (c *IMU) serve(conn *net.UnixConn) {
	var tx, rx [imu.MaxTransfer]byte
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) (end bool) { // conn was closed
		for {
			n, err := rawfd.Read(int(fd), tx[:])
			switch {
			case err == unix.EAGAIN:
				return false
			case err == unix.EINTR:
				continue
			case err != nil || n == 0:
				return true
			}
			if !c.Transfer(monoclock.Now(), tx[:n], rx[:n]) {
				continue
			}
			if _, err := rawfd.Write(int(fd), rx[:n]); err != nil {
				return true
			}
		}
	})
}
