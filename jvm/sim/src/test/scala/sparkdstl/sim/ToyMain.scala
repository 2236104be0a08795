package sparkdstl.sim

/** For trying things out with the toy. */
object ToyMain {
  def main(arguments: Array[String]): Unit = {
    val Array(from, count, lines) = arguments.map(_.toInt)
    val start = System.nanoTime()
    val tally = Seeds.runMany(ToyLog(), from.toLong, count.toLong, 2, 5)(_ => ())
    println(s"$tally in ${(System.nanoTime() - start) / 1000000} ms".take(3000))
    tally.failures.headOption.foreach(f => println(new Seeds(ToyLog()).report(f, lines)))
  }
}
