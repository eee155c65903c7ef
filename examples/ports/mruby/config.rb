# config.rb - what mruby is built of: the default gems, their tests, and with
# RTHEAP_CFLAGS and RTHEAP_LIBS in the environment the library.
MRuby::Build.new do |conf|
  conf.toolchain
  conf.gembox 'default'
  conf.cc.flags << ENV['RTHEAP_CFLAGS'].to_s.split
  conf.linker.flags_after_libraries += ENV['RTHEAP_LIBS'].to_s.split
  conf.enable_bintest
  conf.enable_test
end
