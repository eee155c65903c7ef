# objects.rb - deaths of all sorts; its output is the same on mruby and the port.

# More closures than one piece of code can have references.
def counter(n)
  -> { n += 1 }
end
sum = 0
100_000.times { |i| sum += counter(i).call }
puts sum

# Fibers that are left suspended, and their variables in a block that lives.
blocks = []
2000.times do |i|
  f = Fiber.new do |x|
    y = [i, x.to_s]
    blocks << -> { y } if i % 100 == 0
    Fiber.yield y
    puts 'not reached'
  end
  f.resume(i * 2)
end
GC.start
p blocks.map(&:call)

# Data objects: files are closed when they die.
300.times { File.open('/dev/null') }
GC.start
puts 'files are closed'

# Classes die, and others may have their addresses.
3000.times do |i|
  c = Class.new do
    define_method(:number) { i }
  end
  raise 'stale method' unless c.new.number == i
end

# Every object of a class is found, and no dead one.
class Node
  attr_accessor :next
end
list = nil
100.times do
  n = Node.new
  n.next = list
  list = n
end
n = 0
ObjectSpace.each_object(Node) { n += 1 }
puts n >= 100 && n < 110
puts ObjectSpace.count_objects[:T_FIBER].to_i < 100

h = {}
20_000.times { |i| h["key #{i % 500}"] = [i, "x" * (i % 100)] }
puts h.size, h['key 499'][1].size
