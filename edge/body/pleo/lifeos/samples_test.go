package lifeos_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
)

// TestA1: touch and release of the head each play the beep, from a bundle.
func TestA1(t *testing.T) {
	p := start(t, lifeos.Config{Card: pleosim.Card{"demo.urf": urf(t, map[string]string{"sensors": `#include <Log.inc>
#include <Script.inc>
#include <Sensor.inc>
#include <Sound.inc>
#include "sounds.inc"
public init() { printf("sensors:init() enter\n"); }
public on_sensor(time, sensor_name: sensor, value)
{
	switch (sensor) {
		case SENSOR_HEAD:
			sound_play(snd_beep);
	}
	return true;
}`})}})
	for i, touch := range []int32{1, 0} {
		p.run(second)
		p.body.Set(lifeos.SensorHead, touch)
		before := len(p.body.Speaker)
		p.run(50 * time.Millisecond)
		if got := property(t, p, lifeos.PropSound); got != 4096 {
			t.Errorf("touch %d: sound %d plays, want 4096", touch, got)
		}
		p.run(second)
		if got := len(p.body.Speaker) - before; got != 1102 {
			t.Errorf("touch %d: %d samples, want the 1102 of the beep", touch, got)
		}
		if got := property(t, p, lifeos.PropSound); got != 0 {
			t.Errorf("after it (%d): sound %d", i, got)
		}
	}
	p.want("sensors:init() enter")
}

// TestA2: on_sensor with and without the tag bool is called with time, sensor and value (PLEO-VM-06).
func TestA2(t *testing.T) {
	for _, tag := range []string{"", "bool: "} {
		src := strings.Replace(`#include <Sensor.inc>
public TAGon_sensor(time, sensor_name: sensor, value) { printf("%d %d %d", time, sensor, value); return true; }
`, "TAG", tag, 1)
		if tag != "" {
			src = strings.Replace(src, "#include <Sensor.inc>", "#include <Log.inc>", 1)
		}
		p := start(t, lifeos.Config{Card: card(t, map[string]string{"sensors": src})})
		p.run(500 * time.Millisecond)
		p.body.Set(lifeos.SensorChin, 1)
		p.run(100 * time.Millisecond)
		p.want("510 7 1")
	}
}

// TestA3: the ids of joints (PLEO-JNT-01), and those of sensors and properties that scripts see (PLEO-PRP-07).
func TestA3(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"main": `#include <Joint.inc>
#include <Sensor.inc>
#include <Property.inc>
main() {
	printf("%d %d %d %d %d %d %d", JOINT_RIGHT_SHOULDER, JOINT_RIGHT_ELBOW, JOINT_LEFT_SHOULDER, JOINT_LEFT_ELBOW, JOINT_LEFT_HIP, JOINT_LEFT_KNEE, JOINT_RIGHT_HIP);
	printf("%d %d %d %d %d %d %d", JOINT_RIGHT_KNEE, JOINT_TORSO, JOINT_TAIL_HORIZONTAL, JOINT_TAIL_VERTICAL, JOINT_NECK_HORIZONTAL, JOINT_NECK_VERTICAL, JOINT_HEAD);
	printf("%d %d %d %d %d", SENSOR_BATTERY, SENSOR_TAIL, SENSOR_PACKET, SENSOR_EDGE_IN_FRONT, SENSOR_PLOG);
	printf("%d %d %d %d", property_arousal, property_sound, property_attn_p2p_timeout, property_max);
	sleep 1000000;
}`})})
	p.run(second)
	p.want("0 1 2 3 4 5 6", "7 8 9 10 11 12 13", "2 13 40 101 128", "1 29 37 38")
}

// TestA4: a script that calls each function of joints, and what it gets (PLEO-JNT-03 to PLEO-JNT-11, PLEO-JNT-13 and PLEO-JNT-15).
func TestA4(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"main": `#include <Joint.inc>
#include <Log.inc>
main() {
	printf("%d %d %d", joint_get_min(JOINT_NECK_HORIZONTAL), joint_get_neutral(JOINT_NECK_HORIZONTAL), joint_get_max(JOINT_NECK_HORIZONTAL, angle_degrees));
	printf("%d %d", joint_get_min(JOINT_HEAD, angle_vr), joint_get_max(JOINT_HEAD, angle_vr));
	printf("to %d", joint_move_to(JOINT_NECK_HORIZONTAL, 30, 60));
	sleep 20;
	printf("moving %d", joint_is_moving(JOINT_NECK_HORIZONTAL));
	printf("%d %d", joint_get_attribute(JOINT_NECK_HORIZONTAL, ja_status), joint_get_attribute(JOINT_NECK_HORIZONTAL, ja_setpoint));
	sleep 230;
	printf("at %d", joint_get_position(JOINT_NECK_HORIZONTAL));
	sleep 500;
	printf("at %d moving %d", joint_get_position(JOINT_NECK_HORIZONTAL), joint_is_moving(JOINT_NECK_HORIZONTAL));
	joint_move_to(JOINT_TORSO, 90);
	sleep 1000;
	printf("torso %d", joint_get_position(JOINT_TORSO));
	printf("%d %d", joint_move_to(joint_name: 99, 3), joint_get_max(joint_name: 99));
	joint_control(JOINT_TORSO, 1);
	printf("%d", joint_control(JOINT_TORSO, 0));
	sleep 1000000;
}`})})
	p.run(3 * second)
	p.want("-65 0 55", "0 255", "to 1", "moving 1", "1 30", "at 15", "at 30 moving 0", "torso 15", "0 0", "1")
}

// TestA5: the attributes of a joint by their names, of which two can be written (PLEO-JNT-07), and its status when it is stuck (PLEO-JNT-11).
func TestA5(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"main": `#include <Joint.inc>
#include <Log.inc>
show() {
	for (new joint_attribute: a = ja_none; a <= ja_threshold; a++) printf("%d", joint_get_attribute(JOINT_TAIL_VERTICAL, a));
}
main() {
	printf("%d %d", joint_set_attribute(JOINT_TAIL_VERTICAL, ja_deadband, 3), joint_set_attribute(JOINT_TAIL_VERTICAL, ja_threshold, 9));
	joint_set_attribute(JOINT_TAIL_VERTICAL, ja_position, 50);
	joint_move_to(JOINT_TAIL_VERTICAL, 80, 40);
	sleep 1000; show();
	sleep 10000000;
}`})})
	p.run(500 * time.Millisecond)
	p.want("1 0")
	p.run(600 * time.Millisecond)
	p.want("0", "1", "40", "20", "0", "40", "1000", "80", "3", "9")
	p.body.Block(lifeos.JointTailVertical, true)
	p.run(100 * time.Millisecond)
	if got := p.Monitor("sensor read 122"); got != "10\n" {
		t.Errorf("the stuck joint is %q", got)
	}
}

// TestManyMotions: a script cannot begin more motions than can play.
func TestManyMotions(t *testing.T) {
	p := start(t, lifeos.Config{Card: pleosim.Card{"still.umf": motionFile(t, &format.Motion{Name: "still", Timebase: 255, End: 65535}), "main.amx": compile(t, `#include <Motion.inc>
#include <Log.inc>
main() { new n = 0; for (new i = 0; i < 500; i++) if (motion_play_file("still") != Motion_Invalid) n++; printf("%d", n); sleep 10000000; }`, nil)}})
	p.run(second)
	p.want("32")
}

// TestA6: motions by id, by file and by handle; pause, stop, speed and the cue (PLEO-MOT-01 to PLEO-MOT-12, PLEO-ARC-17).
func TestA6(t *testing.T) {
	c := pleosim.Card{"demo.urf": urf(t, map[string]string{"main": `#include <Motion.inc>
#include <Property.inc>
#include <Joint.inc>
#include <Log.inc>
#include "motions.inc"
neck() return joint_get_position(JOINT_NECK_VERTICAL)
main() {
	new Motion: m = motion_play(mot_nod);
	printf("handle %d playing %d %d %d", m, motion_is_playing(m), motion_is_playing(mot_nod), motion_is_playing(Motion_Any));
	sleep 510;
	printf("neck %d motion %d sound %d", neck(), get(property_motion), get(property_sound));
	motion_pause(m, true);
	sleep 1000;
	printf("neck %d playing %d", neck(), motion_is_playing(m));
	motion_pause(mot_nod, false);
	sleep 490;
	printf("neck %d left %d", neck(), get(property_motion_time) / 100);
	sleep 1100;
	printf("neck %d playing %d motion %d", neck(), motion_is_playing(Motion_Any), get(property_motion));
	printf("speed %d", motion_set_playback_speed(9000));
	motion_set_playback_speed(200);
	m = motion_play_file("wag");
	sleep 250;
	printf("tail %d", joint_get_position(JOINT_TAIL_HORIZONTAL));
	printf("stop %d", motion_stop(m));
	printf("stop %d speed %d", motion_stop(m), motion_get_playback_speed());
	sleep 500;
	printf("tail %d", joint_get_position(JOINT_TAIL_HORIZONTAL));
	printf("none %d", motion_play_file("missing"));
	sleep 1000000;
}`}), "wag.umf": wag(t)}
	p := start(t, lifeos.Config{Card: c})
	p.run(5 * second)
	p.want("handle 1 playing 1 1 1", "neck -10 motion 8192 sound 4096", "neck -10 playing 1", "neck -20 left 10", "neck 0 playing 0 motion 0",
		"speed 400", "tail 22", "stop 1", "stop 0 speed 200", "tail 22", "none 255")
}

// TestA9: sounds by id, by file and by command; volume, speed, stop (PLEO-SND-01 to PLEO-SND-15, PLEO-PRJ-10, PLEO-CMD-02 and PLEO-CMD-05).
func TestA9(t *testing.T) {
	p := start(t, lifeos.Config{Card: pleosim.Card{"growl.usf": beep(t, "growl", 11025), "demo.urf": urf(t, map[string]string{"main": `#include <Sound.inc>
#include <Property.inc>
#include <Log.inc>
#include "sounds.inc"
#include "commands.inc"
main() {
	new Sound: s = sound_play(snd_beep);
	printf("handle %d playing %d %d %d", s, sound_is_playing(s), sound_is_playing(snd_beep), sound_is_playing());
	printf("busy %d", sound_play(snd_growl));
	sleep 110;
	printf("playing %d", sound_is_playing());
	printf("volume %d speed %d", sound_get_volume(), sound_get_speed());
	printf("volume %d", sound_set_volume(5));
	printf("volume %d speed %d", sound_set_volume(200), sound_set_speed(50));
	s = sound_play_file("growl");
	sleep 1900;
	printf("playing %d", sound_is_playing(s));
	printf("stop %d", sound_stop(s));
	printf("stop %d", sound_stop());
	set(property_mood, 1);
	printf("command %d", sound_command(cmd_noises));
	set(property_mood, 2);
	s = sound_command(cmd_noises);
	printf("command %d sound %d", s, get(property_sound));
	set(property_mood, 7);
	sound_command(cmd_noises, true);
	printf("sound %d", get(property_sound));
	sleep 1000000;
}`})}})
	p.run(3 * second)
	p.want("handle 1 playing 1 1 1", "busy 0", "playing 0", "volume 100 speed 100", "volume 10", "volume 200 speed 50", "playing 1", "stop 1", "stop 0", "command 0", "command 3 sound 4096", "sound 4097")
	if most := slices.Max(p.body.Speaker); most != 511 {
		t.Errorf("the loudest sample is %d, want the limit of 10 bits", most)
	}
	if first := p.body.Speaker[1]; first != 256 {
		t.Errorf("a sample at volume 100 is %d, want 256", first)
	}
}

const driveScript = `#include <Drive.inc>
#include <Property.inc>
#include <Script.inc>
#include <Log.inc>
#include "scripts.inc"
#include "user_properties.inc"
forward hunger_eval(); forward social_eval(); forward hunger_init(); forward hunger_activate(); forward hunger_deactivate(); forward hunger_exit();
forward social_activate(); forward social_deactivate(); forward hunger_behavior_eval(behavior_id); forward social_behavior_eval(behavior_id);
public init() {
	set(property_blood_sugar, 100);
	property_set_leak(property_blood_sugar, -3, 100, 100, 0);
	drive_add("hunger", -25, 25, 100);
	drive_add("social", -25, 25, 100);
	printf("%d", drive_add("nothing", 0, 0, 100));
	behavior_add(scr_play, "social", 0, 100, 100, 100, 100);
}
public hunger_init() {
	print("hunger init");
	behavior_add(scr_eat_grass, "hunger", 0, 100, 100, 100, 100);
	behavior_add(scr_play, "hunger", 0, 100, 100, 100, 100);
}
public hunger_eval() return get(property_blood_sugar) <= 30 ? 100 : 0
public social_eval() return 50
public hunger_activate() print("hunger on")
public hunger_deactivate() print("hunger off")
public social_activate() print("social on")
public social_deactivate() print("social off")
public hunger_exit() print("hunger exit")
public social_behavior_eval(behavior_id) return 1
public hunger_behavior_eval(behavior_id) {
	switch (behavior_id) {
		case scr_eat_grass: {
			if (get(property_grass_available) == 1)
				return 50;
			return -50;
		}
	}
	return 0;
}
`

const behaviorScript = `#include <Script.inc>
#include <Log.inc>
public init() print("NAME begins")
main() for (;;) sleep 1000;
public close() print("NAME ends")
`

// TestA10A24: the stronger drive calls deactivate and activate, and changes the script of the Behavior VM; without grass another behavior than eat_grass
// wins (PLEO-DRV-01 to PLEO-DRV-11, PLEO-BHV-01 to PLEO-BHV-08).
func TestA10A24(t *testing.T) {
	c := pleosim.Card{"demo.urf": urf(t, map[string]string{"main": driveScript, "eat_grass": strings.ReplaceAll(behaviorScript, "NAME", "eat"),
		"play": strings.ReplaceAll(behaviorScript, "NAME", "play")})}
	p := start(t, lifeos.Config{Card: c})
	p.run(second)
	p.want("0", "hunger init", "hunger on", "hunger off", "social on", "play begins")
	if got := property(t, p, lifeos.PropDrive); got != 2 {
		t.Errorf("drive %d, want social, the second", got)
	}
	p.SetProperty(0x5001, 1)
	p.run(3 * second)
	p.want("social off", "hunger on", "play ends", "eat begins")
	if drive, script := property(t, p, lifeos.PropDrive), property(t, p, lifeos.PropScript); drive != 1 || script != 0x4002 {
		t.Errorf("drive %d and script %#x, want 1 and 0x4002", drive, script)
	}
	p.SetProperty(0x5001, 0)
	p.run(second)
	p.want("eat ends", "play begins")
	p.Eject()
	p.run(second)
	got := p.said()
	slices.Sort(got)
	if !slices.Equal(got, []string{"hunger exit", "play ends"}) {
		t.Errorf("at the end: %q", got)
	}
}

// TestA12: a packet of the monitor is answered with the version, where log type nxp is on (PLEO-MON-02, PLEO-MON-03 and PLEO-PKT-06).
func TestA12(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"main": `#include <Util.inc>
main() { monitor_exec("pkt send ?"); monitor_exec("log enable nxp"); monitor_exec("pkt send ?"); sleep 1000000; }`})})
	p.run(second)
	var shown, hidden int
	for _, m := range p.log {
		if m.String() == "INFO: nxp: 7361 - Nov 15 2007 21:34:25" {
			if m.Shown {
				shown++
			} else {
				hidden++
			}
		}
	}
	if shown != 1 || hidden != 1 {
		t.Errorf("the version was shown %d times and hidden %d times, want once each", shown, hidden)
	}
}

// TestA13A14: a packet that a script sends is answered through SENSOR_PACKET if the filter lets it through, in profile 1.1 only (PLEO-PKT-07 to PLEO-PKT-12).
func TestA13A14(t *testing.T) {
	scripts := map[string]string{"sensors": `#include <Sensor.inc>
public init() {
	sensor_set_config(SENSOR_PACKET, sensor_config_packet_filter, PACKET_TOUCH | PACKET_ERROR | PACKET_VERSION);
	sensor_write_data(SENSOR_PACKET, "?");
	sensor_write_data(SENSOR_PACKET, "t");
	sensor_write_data(SENSOR_PACKET, !"qq");
	sensor_write_data(SENSOR_PACKET, "e not asked for");
}
public on_sensor(time, sensor_name: sensor, value)
{
	switch (sensor) {
		case SENSOR_PACKET: {
			new data[64];
			new n = sensor_read_data(SENSOR_PACKET, data);
			printf("packet %d %d %s", value, n, data);
		}
		default:
			printf("sensor %d", sensor);
	}
	return true;
}`}
	p := start(t, lifeos.Config{Card: card(t, scripts)})
	p.run(second)
	p.want("packet 28 28 v7361 - Nov 15 2007 21:34:25", "packet 3 3 th0", "packet 3 3 tc0", "packet 3 3 xqq")
	p.body.Set(lifeos.SensorChin, 1)
	p.run(second)
	p.want("sensor 7", "packet 3 3 tc1", "sensor 108")
}

// TestA23: a property leaks 3 every 2 s, and stops at 0 (PLEO-LEK-01 to PLEO-LEK-05).
func TestA23(t *testing.T) {
	p := start(t, lifeos.Config{Card: pleosim.Card{"demo.urf": urf(t, map[string]string{"main": `#include <Property.inc>
#include <Log.inc>
#include "user_properties.inc"
main() {
	set(property_blood_sugar, 50);
	property_set_leak(property_blood_sugar, -3, 2000, 100, 0);
	sleep 1990; printf("%d", get(property_blood_sugar));
	sleep 20; printf("%d", get(property_blood_sugar));
	property_leak_enable(false);
	sleep 3000; printf("%d", get(property_blood_sugar));
	property_leak_enable(true);
	sleep 100000; printf("%d", get(property_blood_sugar));
	new n = 1;
	for (new i = 1; i <= 40; i++) n += property_set_leak(property_name: (0x5001 + i), 1, 1000, 5, 0);
	printf("%d leaks", n);
	set(property_blood_sugar, -5); sleep 5000; printf("%d", get(property_blood_sugar));
	sleep 1000000;
}`})}})
	p.run(120 * second)
	p.want("50", "47", "47", "0", "32 leaks", "-5")
}

// TestIncludes: scripts that include all files twice and call each native, with its default arguments where it has some, are compiled and bound (PLEO-API-01,
// PLEO-API-07 and PLEO-API-08).
func TestIncludes(t *testing.T) {
	var head strings.Builder
	calls, seen := map[string][]string{}, map[string]bool{}
	for range 2 {
		for _, n := range lifeos.Natives() {
			fmt.Fprintf(&head, "#include <%s.inc>\n", n.Include)
		}
	}
	for _, n := range lifeos.Natives() {
		if seen[n.Name()] {
			t.Errorf("%s is there twice", n.Name())
		}
		seen[n.Name()] = true
		list := calls[n.Include]
		if len(list) == 0 || len(list[len(list)-1]) > 500 { // a script that fits into the Behavior VM
			list = append(list, "")
		}
		list[len(list)-1] += "\t" + callOf(n) + ";\n"
		calls[n.Include] = list
	}
	for include, bodies := range calls {
		for _, body := range bodies {
			src := head.String() + "new s[8] = \"abc\", r\nmain() {\n" + body + "}\n"
			p := start(t, lifeos.Config{Card: pleosim.Card{"part.amx": compile(t, src, nil)}})
			p.Monitor("script exec part")
			if p.logged(lifeos.Error, lifeos.LogVM) {
				t.Errorf("%s: %v\n%s", include, p.log, body)
			}
			p.run(50 * time.Millisecond)
		}
	}
	if len(seen) < 165 {
		t.Errorf("%d natives", len(seen))
	}
}

// callOf returns a call of a native without its default arguments.
func callOf(n lifeos.Native) string {
	_, list, _ := strings.Cut(n.Declaration, n.Name()+"(")
	var args []string
	for _, a := range splitArguments(strings.TrimSuffix(list, ")")) {
		switch {
		case a == "" || strings.Contains(a, " = ") || strings.HasSuffix(a, "..."):
		case strings.Contains(a, "[]"), strings.HasPrefix(a, "&"):
			args = append(args, map[bool]string{false: "s", true: "r"}[a[0] == '&'])
		default:
			tag, _, tagged := strings.Cut(a, ":")
			if tag = strings.Trim(strings.Split(strings.TrimPrefix(tag, "{"), ",")[0], "{} "); tagged && tag != "_" {
				args = append(args, tag+": 1")
			} else {
				args = append(args, "1")
			}
		}
	}
	return n.Name() + "(" + strings.Join(args, ", ") + ")"
}

// splitArguments splits at the commas outside of braces.
func splitArguments(list string) (out []string) {
	depth, from := 0, 0
	for i, c := range list {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, strings.TrimSpace(list[from:i])), i+1
			}
		}
	}
	return append(out, strings.TrimSpace(list[from:]))
}
