# tree.rb - binary trees that live long and short.
class Node
  attr_reader :left, :right

  def initialize(left, right)
    @left = left
    @right = right
  end

  def check
    @left ? 1 + @left.check + @right.check : 1
  end
end

def tree(depth)
  depth == 0 ? Node.new(nil, nil) : Node.new(tree(depth - 1), tree(depth - 1))
end

max = 16
long = tree(max)
depth = 4
while depth <= max
  n = 1 << (max - depth + 4)
  sum = 0
  n.times { sum += tree(depth).check }
  puts "#{n} trees of depth #{depth}: #{sum}"
  depth += 4
end
puts long.check
