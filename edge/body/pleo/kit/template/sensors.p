// The sensor script: LifeOS calls on_sensor whenever a sensor has something to tell.
#include <Log.inc>
#include <Script.inc>
#include <Sensor.inc>
#include <Sound.inc>

#include "sounds.inc"

public init()
{
	print("sensors: ready\n");
}

// The result says whether the trigger is done with. Otherwise it comes again.
public on_sensor(time, sensor_name: sensor, value)
{
	switch (sensor)
	{
		case SENSOR_HEAD:
			sound_play(snd_beep);
		default:
			printf("%d: sensor %d is %d\n", time, _: sensor, value);
	}
	return true;
}
