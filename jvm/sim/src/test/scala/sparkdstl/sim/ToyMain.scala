package sparkdstl.sim

/** For trying things out with the toy. */
object ToyMain {
  def main(arguments: Array[String]): Unit = {
    val seeds = new Seeds(ToyLog())
    (arguments(0).toLong to arguments(1).toLong).foreach { seed =>
      val start = System.nanoTime()
      val r = seeds.run(seed)
      println(s"$seed ${r.steps} steps ${(System.nanoTime() - start) / 1000000} ms, ${r.committed} ${r.decidable} ${r.violation.getOrElse("")}")
      if (arguments.length > 2 && r.violation.nonEmpty) println(seeds.report(r, arguments(2).toInt))
    }
  }
}
