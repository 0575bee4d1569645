package plane

import "math"

// Gravity is the standard one, m/s2.
const Gravity = 9.80665

// Inertia is the acceleration and turning that the body feels, in its own axes: at rest 1 g upwards, in free fall nothing.
type Inertia struct {
	Accel [3]float64 `json:"accel"` // m/s2
	Gyro  [3]float64 `json:"gyro"`  // rad/s
}

// feel is the attitude of the body and what moves it.
type feel struct {
	height, rise float64 // m, m/s2
	pitch, roll  float64
	turning      [2]float64 // rad/s, of pitch and roll
	speed        float64    // m/s ahead
	across       float64    // m/s to the left, of a push
	now          Inertia
}

// mostAccel is the largest reading of a 16 g sensor.
const mostAccel = 16 * Gravity

func (f *feel) still() { *f = feel{now: Inertia{Accel: [3]float64{0, 0, Gravity}}} }

// down is a robot that was set on its treads: its height and speed are none, its attitude follows.
func (f *feel) down() { f.height, f.rise, f.speed, f.across = 0, 0, 0, 0 }

// turnTo turns towards an attitude by most rad in s seconds.
func (f *feel) turnTo(pitch, roll, most, s float64) {
	p, r := f.pitch, f.roll
	f.pitch += min(max(pitch-f.pitch, -most), most)
	f.roll += min(max(roll-f.roll, -most), most)
	f.turning = [2]float64{}
	if s > 0 {
		f.turning = [2]float64{(f.pitch - p) / s, (f.roll - r) / s}
	}
}

// sense measures the step that brought the robot from before to where it is.
func (w *World) sense(s float64, before Pose) {
	f := &w.feel
	if s <= 0 {
		return
	}
	yaw := wrap(w.pose[2]-before[2]) / s
	v := before.place().to(w.pose.place())
	sin, cos := math.Sincos(w.pose[2])
	ahead := v.dot(Vec{cos, sin}) / s
	if w.posture != OnTreads {
		ahead, yaw = 0, 0
	}
	across := 0.0 // treads take it nowhere else
	if w.hand.push != (Vec{}) {
		across = v.dot(Vec{-sin, cos}) / s
	}
	along, aside := (ahead-f.speed)/s, float64(ahead*yaw)+(across-f.across)/s
	f.speed, f.across = ahead, across
	if w.posture == Falling {
		along = 0
	}
	sp, cp := math.Sincos(f.pitch)
	sr, cr := math.Sincos(f.roll)
	up := Gravity + f.rise
	if w.hand.impact > 0 {
		up += float64(impactG * Gravity)
	}
	f.now.Accel = [3]float64{along - float64(up*sp), aside + float64(up*float64(cp*sr)), float64(up * float64(cp*cr))}
	f.now.Gyro = [3]float64{
		f.turning[1] - float64(yaw*sp),
		float64(f.turning[0]*cr) + float64(yaw*float64(cp*sr)),
		float64(yaw*float64(cp*cr)) - float64(f.turning[0]*sr),
	}
	shaken, shaky := w.robot.InertialNoise, w.robot.GyroNoise
	if w.posture == InHand {
		shaken, shaky = both(shaken, w.robot.HandAccel), both(shaky, w.robot.HandRate)
	}
	if w.hand.shaking > 0 {
		f.now.Accel[1] += float64(shakeG * Gravity * math.Sin(float64(2*math.Pi*shakeRate*w.hand.since)))
	}
	for i := range 3 {
		f.now.Accel[i] = min(max(f.now.Accel[i]+float64(shaken*w.rng.NormFloat64()), -mostAccel), mostAccel)
		f.now.Gyro[i] += float64(shaky * w.rng.NormFloat64())
	}
}

// Inertia returns what the body felt in the last step.
func (w *World) Inertia() Inertia { return w.feel.now }

// both is the deviation of two noises at once. Not by Hypot, which some processors have an own one of.
func both(a, b float64) float64 { return math.Sqrt(float64(a*a) + float64(b*b)) }
