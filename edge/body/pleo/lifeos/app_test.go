package lifeos_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
)

// say is a main script that prints a word.
func say(word string) string {
	return "#include <Log.inc>\nmain() { print(\"" + word + "\"); sleep 10000000; }\n"
}

// TestApplication: the card's application comes first, then the dataflash's; a bundle with a wrong sum is refused; of several bundles pleo.urf counts (PLEO-APP-01 to
// PLEO-APP-04, PLEO-PRJ-05).
func TestApplication(t *testing.T) {
	flash := pleosim.Card{"built-in.urf": urf(t, map[string]string{"main": say("flash")})}
	broken := urf(t, map[string]string{"main": say("broken")})
	broken[600]++
	for _, c := range []struct {
		name string
		card pleosim.Card
		want string
	}{
		{"no card", nil, "flash"},
		{"a card without application", pleosim.Card{"notes.txt": []byte("x")}, "flash"},
		{"single files", card(t, map[string]string{"main": say("card")}), "card"},
		{"a bundle", pleosim.Card{"a.urf": urf(t, map[string]string{"main": say("bundle")})}, "bundle"},
		{"two bundles", pleosim.Card{"a.urf": urf(t, map[string]string{"main": say("a")}), "Pleo.urf": urf(t, map[string]string{"main": say("pleo")})}, "pleo"},
		{"a broken bundle", pleosim.Card{"a.urf": broken}, "flash"},
		{"a file before the bundle", pleosim.Card{"main.amx": compile(t, say("file"), nil), "a.urf": urf(t, map[string]string{"main": say("bundle")})}, "file"},
	} {
		cfg := lifeos.Config{Flash: flash}
		if c.card != nil {
			cfg.Card = c.card
		}
		p := start(t, cfg)
		p.run(100 * time.Millisecond)
		if got := p.said(); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: printed %q, want %q", c.name, got, c.want)
		}
	}
}

// TestShadowing: a sound on the card replaces the one of its name in the dataflash (PLEO-APP-05, PLEO-APP-06), and ids have names (PLEO-APP-07).
func TestShadowing(t *testing.T) {
	flash := pleosim.Card{"built-in.urf": urf(t, map[string]string{"main": `#include <Sound.inc>
#include <Resource.inc>
#include <Log.inc>
#include "sounds.inc"
main() {
	new name[33];
	resource_get_name(snd_growl, name);
	printf("%s %d %d", name, resource_get_id("growl"), resource_get_id("missing"));
	sound_play(snd_beep);
	sleep 10000000;
}`})}
	for _, c := range []struct {
		card    pleosim.Card
		samples int
	}{{pleosim.Card{}, 1102}, {pleosim.Card{"sounds/BEEP.USF": beep(t, "beep", 500)}, 500}} {
		p := start(t, lifeos.Config{Card: c.card, Flash: flash})
		p.run(second)
		p.want("growl 4097 0")
		if got := len(p.body.Speaker); got != c.samples {
			t.Errorf("card %v: %d samples, want %d", len(c.card), got, c.samples)
		}
	}
}

// TestUnload: a script of the User VM loads and unloads applications, if it is trusted (PLEO-APP-08, part of PLEO-APP-09).
func TestUnload(t *testing.T) {
	files := card(t, map[string]string{"main": say("main"), "startup": `#include <Application.inc>
#include <Log.inc>
main() { sleep 100; printf("unload %d", app_unload()); sleep 100; printf("loaded %d", app_is_loaded());
	printf("load %d", app_load("a:/apps/other.bin")); sleep 100; printf("loaded %d", app_is_loaded()); }`})
	files["apps/other.bin"] = urf(t, map[string]string{"main": say("other")})
	delete(files, "main.amx")
	files["first.urf"] = urf(t, map[string]string{"main": say("main")})
	for _, c := range []struct {
		trust func([]byte) bool
		want  []string
	}{{nil, []string{"main", "unload 1", "loaded 0", "load 1", "other", "loaded 1"}},
		{func([]byte) bool { return false }, []string{"main", "unload 0", "loaded 1", "load 0", "loaded 1"}}} {
		p := start(t, lifeos.Config{Card: files, Trust: c.trust})
		p.run(second)
		p.want(c.want...)
	}
}

// TestFiles: files of scripts stay on their drive, and strings of both kinds reach natives (PLEO-XAPI-11, PLEO-VM-21, part of PLEO-ARC-19).
func TestFiles(t *testing.T) {
	files := card(t, map[string]string{"main": `#include <File.inc>
#include <String.inc>
#include <Log.inc>
main() {
	new line[20], File: f = file_open("a:/log/day.txt", io_write);
	file_puts(f, "one\n");
	file_puts(f, !"two\n");
	file_printf(f, "%d%s\n", 42, !"!");
	printf("size %d", file_get_size(f));
	printf("close %d", file_close(f));
	f = file_open("a:/../log/day.txt", io_read);
	file_gets(f, line); printf("%s", line);
	file_gets(f, line); printf("%s", line);
	printf("%d", file_seek(f, -4, seek_end));
	file_read(f, line, true); printf("%s", line);
	file_close(f);
	printf("%d", find_first("a:/log/*.txt", line)); printf("%s", line);
	printf("%d %d %d", file_exists("a:/log/day.txt"), file_exists("b:/x"), file_open("c:/x", io_read));
	printf("%d", file_delete("log/day.txt"));
	printf("%d", file_exists("log/day.txt"));
	string_copy(line, !"packed"); printf("%d %d %s", string_length(line), string_is_packed(line), line);
	printf("%d %d", string_compare("abc", !"ABC", true), string_compare("abc", "abd"));
	string_printf(line, sizeof line, true, "%d-%s", 7, "x"); printf("%s", line);
	new a[8], b[8];
	printf("%d", string_tokenize("one, two,three", ", ", a, b)); printf("%s %s", a, b);
	printf("%d %d %d", atoi("-12x"), atoi("x"), abs(-5));
	sleep 10000000;
}
native abs(i);
`})
	p := start(t, lifeos.Config{Card: files})
	p.run(second)
	p.want("size 12", "close 1", "one", "two", "8", "42!", "1", "day.txt", "1 0 0", "1", "0", "6 1 packed", "0 -1", "7-x", "3", "one two", "-12 0 5")
	if len(files) != 1 {
		t.Errorf("files %v", files)
	}
}

// TestCommands: a motion command plays one of its motions; another one waits for it (PLEO-CMD-03, PLEO-CMD-04).
func TestCommands(t *testing.T) {
	p := start(t, lifeos.Config{Card: pleosim.Card{"demo.urf": urf(t, map[string]string{"main": `#include <Animation.inc>
#include <Property.inc>
#include <Log.inc>
#include "commands.inc"
show() printf("%d %d %d motion %d", get(property_command), get(property_command_status), get(property_command_pending), get(property_motion))
main() {
	show();
	new Command: c = command_exec(cmd_moves, 2);
	show();
	printf("%d", command_add(cmd_moves));
	show();
	sleep 1500; show();
	printf("playing %d", command_is_playing(c));
	sleep 1000; show();
	sleep 1000; show();
	printf("playing %d wrong kind %d", command_is_playing(cmd_moves), command_exec(cmd_noises));
	command_exec(cmd_moves); printf("%d", command_remove(cmd_moves)); show();
	sleep 10000000;
}`})}})
	p.run(5 * second)
	p.want("0 -1 0 motion 0", "12289 1 0 motion 8193", "2", "12289 1 12289 motion 8193", "12289 0 12289 motion 8193", "playing 1",
		"12289 0 0 motion 8193", "0 2 0 motion 0", "playing 0 wrong kind 0", "1", "0 2 0 motion 0")
}

// TestMonitor: commands in any case, answers, and the list of types (PLEO-MON-03, PLEO-MON-08; PLEO-MON-01 and part of PLEO-MON-09).
func TestMonitor(t *testing.T) {
	p := start(t, lifeos.Config{Card: pleosim.Card{"nod.umf": nod(t), "beep.usf": beep(t, "beep", 1000)}})
	p.run(second)
	for _, c := range []struct{ line, want string }{
		{"LOG", "error warning script\n"}, {"log enable VM", ""}, {"log", "error warning vm script\n"}, {"log disable error", ""}, {"log", "warning vm script\n"},
		{"log enable nothing", "no such type\n"}, {"motion play a:nod.umf", ""}, {"sound volume 50", ""}, {"sound play BEEP", ""},
		{"stats power", "Battery sensor value = 100 (22 C)\n"}, {"property set 8 5", ""}, {"property get 8", "5\n"}, {"sensor read 29", "1\n"},
		{"joint move 8 90", ""}, {"joint move 14 9", "want a joint from 0 to 13 and an angle\n"}, {"joint move 8", "joint move: want ID DEGREES\n"}, {"fly", "unknown command\n"}, {"", ""},
	} {
		if got := p.Monitor(c.line); got != c.want {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
	p.run(2 * second)
	if got := p.body.Joint(lifeos.JointTorso).Position; got != 15 {
		t.Errorf("torso at %v, want its limit", got)
	}
	if got := slices.Max(p.body.Speaker); got != 128 {
		t.Errorf("loudest sample %d, want 128 at half the volume", got)
	}
	if help := p.Monitor("help"); !strings.Contains(help, "pkt send PACKET\n") {
		t.Errorf("help %q", help)
	}
}

// TestSequences: a learned chain is followed, and triggers with its action (PLEO-SEQ-03 to PLEO-SEQ-06 and PLEO-SEQ-09).
func TestSequences(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"sensors": printSensors, "main": `#include <Sequence.inc>
#include <Log.inc>
main() {
	printf("%d", sequence_move_next(SENSOR_HEAD));
	printf("%d", sequence_move_next(SENSOR_BACK));
	sequence_set_action(77);
	printf("%d", sequence_check_next(SENSOR_CHIN));
	printf("%d %d", sequence_peek_next(SENSOR_HEAD), sequence_peek_next(SENSOR_BACK));
	sequence_check_next(SENSOR_HEAD);
	printf("%d %d", sequence_get_action(), sequence_check_next(SENSOR_BACK));
	sleep 10000000;
}`})})
	p.run(second)
	p.want("1", "2", "0", "1 0", "77 1", "121=77")
}

// TestHost: settings, versions, characters of the terminal and a log of the script's own (PLEO-XAPI-01, PLEO-XAPI-05, PLEO-XAPI-12, PLEO-XAPI-13).
func TestHost(t *testing.T) {
	files := card(t, map[string]string{"main": `#include <Util.inc>
#include <Log.inc>
#include <Joint.inc>
main() {
	new v[12];
	version_get(version_serial, v); printf("%s", v);
	version_set(version_board_id, "B7"); version_get(version_board_id, v); printf("%s", v);
	config_set(config_log_color, 1); printf("%d", config_get(config_log_color));
	printf("%d %d", getchar(), haschar());
	sleep 200;
	printf("%d", haschar()); printf("%c", getchar());
	joint_set_stall_detect_enable(false); printf("%d", joint_get_stall_detect_enable());
	log_set_file("a:/log.txt");
	print("kept");
	log_flush();
	sleep 10000000;
}`})
	p := start(t, lifeos.Config{Card: files, Serial: 4711})
	p.run(100 * time.Millisecond)
	p.Terminal("xy")
	p.run(second)
	p.want("4711", "B7", "1", "-1 0", "1", "x", "0", "kept")
	if got := string(files["log.txt"]); got != "script: kept\n" {
		t.Errorf("log file %q", got)
	}
}
