# forgotten.rb - objects of every type that gc.c traces, and one collection.
class Pair
  NAMES = %w[a b]

  def initialize(a)
    @a = a
  end
end

class Bad < StandardError
  def initialize(text)
    super
    @more = [text, text]
  end
end

def counter(n)
  -> { n << 'more' }
end

text = 'text ' * 20
list = (1..100).map { |i| "number #{i}" }
table = Hash.new { |h, k| h[k] = k }
list.each { |s| table[s] = s }
keep = [Pair.new(text), counter(text), table, text[7, 80], list[10, 80],
        ['one', 'a'], ('a' * 40)..('b' * 40), Bad.new('bad ' * 20)]

# The collection comes while a break waits for the code after ensure.
list.each do
  begin
    break 'broken' * 20
  ensure
    GC.start
  end
end
puts keep.size # 8
