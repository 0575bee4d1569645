package compiler_test

import (
	"io/fs"
	"slices"
	"testing"

	"kennel/edge/pawn"
	"kennel/edge/pawn/compiler"
)

// lifeOS has include files in the shape of the kit's, as far as the samples need them.
var lifeOS = map[string]string{
	"default.inc":    "const TARGET_PLEO = 100\n",
	"Log.inc":        "native printf(const format[], ...)\n",
	"Script.inc":     "forward public init()\nforward public close()\n",
	"pleo/types.inc": "enum sensor_name { SENSOR_NONE, SENSOR_HEAD, SENSOR_CHIN, SENSOR_PACKET = 30 }\nenum sensor_config { sensor_config_packet_filter = 3 }\nenum packet_type { PACKET_TOUCH = 84 }\n",
	"Sensor.inc": `#include <Log>
#include <pleo/types.inc>
forward public on_sensor(time, sensor_name: sensor, value)
native sensor_set_config(sensor_name: sensor, sensor_config: config, value)
native sensor_read_data(sensor_name: sensor, buffer[], size = sizeof buffer)
`,
	"Sound.inc": `enum sound_name
{
    snd_none = 0,
    snd_min = 4096,
    snd_beep = 4096,
    snd_max
};
native sound_play(sound_name: sound)
`,
}

func sample(t *testing.T, src string) (*pawn.Machine, []string) {
	t.Helper()
	r := compiler.Compile("sensors.p", []byte(src), compiler.Options{Optimise: 2, Debug: 1, Overlay: 8192, StackHeap: 128, Prefix: "default.inc", Include: []string{"."},
		Defines: []compiler.Define{{Name: "TARGET", Value: 100}},
		Open: func(name string) ([]byte, error) {
			if s, ok := lifeOS[name]; ok {
				return []byte(s), nil
			}
			return nil, fs.ErrNotExist
		}})
	if r.Program == nil || len(r.Messages) > 0 {
		t.Fatalf("messages %v", r.Messages)
	}
	var calls []string
	m, err := pawn.New(r.Program, pawn.Options{Natives: func(name string) pawn.Native {
		return func(c pawn.Call) (int32, pawn.Code) {
			calls = append(calls, name)
			if name == "sound_play" && c.Arg(0) != 4096 || name == "sensor_read_data" && (c.Arg(0) != 30 || c.Arg(2) != 32) {
				calls = append(calls, "wrong argument")
			}
			return 0, pawn.OK
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []struct {
		name string
		args []int32
	}{{"init", nil}, {"on_sensor", []int32{1000, 1, 1}}, {"on_sensor", []int32{1001, 30, 12}}, {"on_sensor", []int32{1002, 2, 0}}} {
		i, ok := m.Public(call.name)
		if !ok {
			t.Fatalf("no public %s", call.name)
		}
		var run pawn.Running
		if code := m.Begin(&run, i, call.args...); code != pawn.OK {
			t.Fatal(code)
		}
		if result := m.Run(&run, 1e6); result.Code != pawn.OK {
			t.Fatalf("%s: %v", call.name, result.Code)
		}
	}
	return m, calls
}

// TestSamples compiles the samples of the programming guide with the options of real projects: a beep when the head is touched, and
// touch packets of the head.
func TestSamples(t *testing.T) {
	_, calls := sample(t, `
#include <Log>
#include <Script>
#include <Sensor>
#include <Sound>
public init()
{
}
public on_sensor(time, sensor_name: sensor, value)
{
    switch (sensor)
    {
        case SENSOR_HEAD:
            sound_play(snd_beep);
        default:
            printf("sensor %d: %d\n", sensor, value);
    }
    return true;
}
`)
	if want := []string{"sound_play", "printf", "printf"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	_, calls = sample(t, `
// sensors of the head
#include <Script.inc>
#include <Sensor.inc>
public init()
{
    sensor_set_config(SENSOR_PACKET, sensor_config_packet_filter, PACKET_TOUCH);
}

public on_sensor(time, sensor_name:sensor, value)
{
    switch (sensor)
    {
        case SENSOR_PACKET:
        {
            new buffer[32];
            sensor_read_data(SENSOR_PACKET, buffer);
            for (new i = 0; i < value && i < sizeof buffer; i++)
                if (buffer{i} != 0)
                    printf("%d ", buffer{i});
        }
        default:
            printf("sensor %d\n", sensor);
    }
    return true;
}
`)
	if want := []string{"sensor_set_config", "printf", "sensor_read_data", "printf"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}
