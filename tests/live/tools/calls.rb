# Calls of a function in C, 300 of them, 40 objects of a class, and garbage collections, for beside.sh.
place = ARGV[0] + "/"
class EspyPart; end
File.write(place + "ready", "")
sleep 0.05 until File.exist?(place + "go")
300.times { |i| i.digits }
40.times { EspyPart.new }
3.times { GC.start }
File.write(place + "done", "")
sleep 60
